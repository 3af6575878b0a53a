/** Names the object that a policy is attached to, instead of workloads by labels: a Gateway, a Service. */
export interface PolicyTargetReference {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
}

/** What a policy holds for; neither: all workloads of its namespace, of the mesh in the root namespace. */
export interface PolicyScope {
  /** Labels of workloads. */
  readonly selector?: Readonly<Record<string, string>>;
  readonly targetRefs?: readonly PolicyTargetReference[];
}
