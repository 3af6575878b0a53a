export interface PolicyTargetReference {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
}

/** Without either field, a policy applies to all workloads of its namespace; in the root namespace, of the mesh. */
export interface PolicyScope {
  readonly selector?: Readonly<Record<string, string>>;
  readonly targetRefs?: readonly PolicyTargetReference[];
}
