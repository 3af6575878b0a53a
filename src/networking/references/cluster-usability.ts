/** When Envoy can use a new cluster: from its bytes. */
import { fromBinary } from '@bufbuild/protobuf';
import { type Cluster, Cluster_DiscoveryType, ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { NameCollector } from './collect-names.ts';
import { secretFields } from './name-fields.ts';

/** What Envoy waits for before it uses a new cluster (Envoy documentation, "Resource warming"). */
export interface ClusterUsability {
  /**
   * `at once`: nothing. `assignment`: only its endpoints, which come on the stream.
   * `warming`: anything else, as a DNS lookup or a health check; Envoy acknowledges CDS after it.
   */
  readonly after: 'at once' | 'assignment' | 'warming';
  /** Name of the assignment. */
  readonly assignment: string;
  /** Secrets that it fetches: it waits for those that no other cluster has fetched. */
  readonly secrets: ReadonlySet<string>;
}

const collector = new NameCollector({ fields: secretFields, skipped: new Set() });

/** @param first chunk of the encoded cluster, which begins at `start` */
export function usabilityOf(first: Uint8Array, start: number): ClusterUsability {
  const cluster = fromBinary(ClusterSchema, first.subarray(start));
  return {
    after: awaitedBy(cluster),
    assignment: cluster.edsClusterConfig?.serviceName || cluster.name,
    secrets: secretsIn(first, start),
  };
}

/** Secrets that a cluster fetches by SDS. */
export function secretsIn(first: Uint8Array, start: number): ReadonlySet<string> {
  const secrets = new Set<string>();
  collector.collect(ClusterSchema, first, secrets, start);
  return secrets;
}

function awaitedBy({ clusterDiscoveryType, healthChecks }: Cluster): ClusterUsability['after'] {
  if (healthChecks.length > 0 || clusterDiscoveryType.case === 'clusterType') return 'warming';
  switch (clusterDiscoveryType.value) {
    case Cluster_DiscoveryType.EDS:
      return 'assignment';
    case undefined:
    case Cluster_DiscoveryType.STATIC:
    case Cluster_DiscoveryType.ORIGINAL_DST:
      return 'at once';
    default:
      return 'warming';
  }
}
