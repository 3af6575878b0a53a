/** Names the object that a policy is attached to, as an alternative to labels: a Gateway, a Service. */
export interface PolicyTargetReference {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
}

/** The workloads that a policy applies to. With neither field, all of its namespace, or of the mesh in the root namespace. */
export interface PolicyScope {
  readonly selector?: Readonly<Record<string, string>>;
  readonly targetRefs?: readonly PolicyTargetReference[];
}
