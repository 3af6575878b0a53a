import {
  Cluster_LbPolicy,
  type Cluster_SlowStartConfigSchema,
  type ClusterSchema,
} from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type {
  ConsistentHashLoadBalancer,
  LoadBalancerSettings,
  WarmupConfiguration,
} from '../../model/kinds/destinations/traffic-policy.ts';
import type { Init } from '../messages/init.ts';
import { duration } from '../messages/protobuf-duration.ts';
import type { EffectivePolicy, LocalityOrdering } from '../traffic/traffic-policy.ts';

type ClusterInit = Init<typeof ClusterSchema>;
type LbFields = Pick<ClusterInit, 'lbPolicy' | 'lbConfig'>;

const defaultMinimumRingSize = 1024;
const defaultMinimumWarmupPercent = 10;

/** Not for original-destination clusters, which cannot choose between endpoints. */
export function loadBalancing(settings: LoadBalancerSettings | undefined): LbFields {
  if (settings?.consistentHash) return consistentHash(settings.consistentHash);
  const slowStartConfig = settings?.warmup && slowStart(settings.warmup);
  switch (settings?.simple) {
    case 'RANDOM':
      return { lbPolicy: Cluster_LbPolicy.RANDOM };
    case 'ROUND_ROBIN':
      return {
        lbPolicy: Cluster_LbPolicy.ROUND_ROBIN,
        ...(slowStartConfig && { lbConfig: { case: 'roundRobinLbConfig', value: { slowStartConfig } } }),
      };
    default:
      return {
        lbPolicy: Cluster_LbPolicy.LEAST_REQUEST,
        ...(slowStartConfig && { lbConfig: { case: 'leastRequestLbConfig', value: { slowStartConfig } } }),
      };
  }
}

function consistentHash(hash: ConsistentHashLoadBalancer): LbFields {
  if (hash.maglev !== undefined) {
    const { tableSize } = hash.maglev;
    return {
      lbPolicy: Cluster_LbPolicy.MAGLEV,
      ...(tableSize && { lbConfig: { case: 'maglevLbConfig', value: { tableSize: BigInt(tableSize) } } }),
    };
  }
  const size = hash.ringHash?.minimumRingSize || hash.minimumRingSize || defaultMinimumRingSize;
  return {
    lbPolicy: Cluster_LbPolicy.RING_HASH,
    lbConfig: { case: 'ringHashLbConfig', value: { minimumRingSize: BigInt(size) } },
  };
}

function slowStart(warmup: WarmupConfiguration): Init<typeof Cluster_SlowStartConfigSchema> {
  return {
    slowStartWindow: duration(warmup.durationMs),
    aggression: { defaultValue: warmup.aggression ?? 1, runtimeKey: '' },
    minWeightPercent: { value: warmup.minimumPercent ?? defaultMinimumWarmupPercent },
  };
}

function zoneAware({ minClusterSize }: NonNullable<LocalityOrdering['zoneAware']>): { minClusterSize?: bigint } {
  return minClusterSize === undefined ? {} : { minClusterSize: BigInt(minClusterSize) };
}

/** @param receivesUnhealthyEndpoints whether the cluster contains unhealthy endpoints. Panic mode is then disabled, so that Envoy never uses them. */
export function commonLbConfig(
  { outlierDetection }: EffectivePolicy,
  locality: LocalityOrdering | undefined,
  receivesUnhealthyEndpoints: boolean,
): NonNullable<ClusterInit['commonLbConfig']> {
  const failover = locality?.failover?.length || locality?.failoverPriority?.length;
  const failsOver = failover && outlierDetection !== undefined;
  const usesLocalityWeights = locality?.distribute?.length || failsOver || locality?.distribution !== undefined;
  const panicThreshold = receivesUnhealthyEndpoints ? 0 : outlierDetection && (outlierDetection.minHealthPercent ?? 0);
  return {
    ...(panicThreshold !== undefined && { healthyPanicThreshold: { value: panicThreshold } }),
    ...(locality?.zoneAware
      ? { localityConfigSpecifier: { case: 'zoneAwareLbConfig', value: zoneAware(locality.zoneAware) } }
      : usesLocalityWeights && { localityConfigSpecifier: { case: 'localityWeightedLbConfig', value: {} } }),
  };
}
