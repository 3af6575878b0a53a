import type { MeshNetworks } from '../../mesh/mesh-networks.ts';
import type { ExportRule } from '../visibility.ts';

/** What the Kubernetes registry is told beside its objects. */
export interface KubernetesOptions extends ExportRule {
  readonly trustDomain: string;
  /** Suffix of host names, `cluster.local`. */
  readonly domain: string;
  readonly clusterId: string;
  readonly defaultServiceExportTo: readonly string[];
  /** The control plane's own namespace: its label may name the network of the cluster. */
  readonly systemNamespace: string;
  readonly networks: MeshNetworks;
  /** PILOT_ENABLE_K8S_SELECT_WORKLOAD_ENTRIES. */
  readonly selectWorkloadEntries: boolean;
  /** PILOT_PERSISTENT_SESSION_LABEL: services with it keep sending to endpoints that drain. */
  readonly persistentSessionLabel: string;
}
