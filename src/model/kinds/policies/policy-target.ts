/** Names an object that a policy is attached to, such as a Gateway or Service, as an alternative to labels. */
export interface PolicyTargetReference {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
}

/** The workloads that a policy applies to. Without either field, it applies to all workloads of its namespace; in the root namespace, of the mesh. */
export interface PolicyScope {
  readonly selector?: Readonly<Record<string, string>>;
  readonly targetRefs?: readonly PolicyTargetReference[];
}
