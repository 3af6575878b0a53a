/** Selects workloads of a namespace by labels; empty labels select all. */
export interface WorkloadSelector {
  readonly labels: Readonly<Record<string, string>>;
}
