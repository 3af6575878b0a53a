/** Chooses workloads of a namespace by labels; no labels choose all. */
export interface WorkloadSelector {
  readonly labels: Readonly<Record<string, string>>;
}
