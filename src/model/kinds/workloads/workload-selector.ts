/** Empty labels select all workloads of the namespace. */
export interface WorkloadSelector {
  readonly labels: Readonly<Record<string, string>>;
}
