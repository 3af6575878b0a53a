import type { WorkloadSelector } from '../workloads/workload-selector.ts';
import type { TrafficPolicy } from './traffic-policy.ts';

export interface DestinationRule {
  readonly host: string;
  readonly trafficPolicy?: TrafficPolicy;
  readonly subsets?: readonly Subset[];
  readonly exportTo?: readonly string[];
  readonly workloadSelector?: WorkloadSelector;
}

export interface Subset {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly trafficPolicy?: TrafficPolicy;
}
