import type { ApplicationProtocol } from '../../fields/protocol.ts';
import type { WorkloadEntry } from './workload-entry.ts';
import type { WorkloadSelector } from './workload-selector.ts';

export type ServiceEntryResolution = 'NONE' | 'STATIC' | 'DNS' | 'DNS_ROUND_ROBIN' | 'DYNAMIC_DNS';

export interface ServiceEntry {
  readonly hosts: readonly string[];
  /** IP addresses or CIDR ranges. */
  readonly addresses?: readonly string[];
  readonly ports: readonly ServiceEntryPort[];
  readonly location: 'MESH_EXTERNAL' | 'MESH_INTERNAL';
  readonly resolution: ServiceEntryResolution;
  readonly endpoints?: readonly WorkloadEntry[];
  readonly workloadSelector?: WorkloadSelector;
  readonly exportTo?: readonly string[];
  readonly subjectAltNames?: readonly string[];
}

export interface ServiceEntryPort {
  readonly number: number;
  readonly name: string;
  readonly protocol: ApplicationProtocol;
  readonly targetPort?: number;
}
