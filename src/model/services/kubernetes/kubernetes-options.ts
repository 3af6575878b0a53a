import type { MeshNetworks } from '../../mesh/mesh-networks.ts';
import type { ExportRule } from '../visibility.ts';

export interface KubernetesOptions extends ExportRule {
  readonly trustDomain: string;
  readonly domain: string;
  readonly clusterId: string;
  readonly defaultServiceExportTo: readonly string[];
  /** Namespace of the control plane. Its label can name the cluster's network. */
  readonly systemNamespace: string;
  readonly networks: MeshNetworks;
  readonly selectWorkloadEntries: boolean;
  /** PILOT_PERSISTENT_SESSION_LABEL: for services with this label, draining endpoints stay in the assignment. */
  readonly persistentSessionLabel: string;
}
