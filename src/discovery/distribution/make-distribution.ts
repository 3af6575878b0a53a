import type { Logger } from '../../runtime/output/log.ts';
import type { MeshConfigs } from '../config/snapshots/mesh-configs.ts';
import { clusterConfig } from '../config/sources/config-sources.ts';
import { resourceOf } from '../kubernetes/api-resource.ts';
import type { InformerEffects } from '../kubernetes/api-server.effects.ts';
import type { ApiServer } from '../kubernetes/api-server.ts';
import type { ClusterSource } from '../kubernetes/readers/cluster-source.ts';
import { ClusterObjects } from './cluster-objects.ts';
import { distributionWithEffects } from './distribution.effects.ts';
import { ObjectDistribution } from './distribution.ts';
import type { ObjectDistributionOptions } from './distribution-options.ts';
import { OtherReplicas } from './other-replicas.ts';

export interface DistributionParts extends Pick<ObjectDistributionOptions, 'configs' | 'proxies' | 'generate'> {
  readonly cluster: {
    readonly server: Pick<ApiServer, 'list'>;
    readonly informers: InformerEffects;
    readonly sources: ReadonlyMap<string, ClusterSource>;
    readonly identity: string;
  };
  readonly options: { readonly namespace: string; readonly revision: string; readonly leaseMs: number };
  readonly limits: Pick<MeshConfigs, 'onLimited'>;
  readonly isWriter: () => boolean;
  readonly onReplicasChanged: () => void;
  readonly log: Pick<Logger, 'warn'>;
}

export function makeDistribution(distributionParts: DistributionParts) {
  const {
    cluster,
    options,
    limits,
    isWriter,
    onReplicasChanged: replicasChanged,
    log,
    ...objectOptions
  } = distributionParts;
  const { server, informers, sources, identity } = cluster;
  const now = (): number => performance.now();
  const otherReplicas = new OtherReplicas({
    ...options,
    server,
    identity,
    isWriter,
    now,
    onChanged: replicasChanged,
    log,
  });
  const objects = new ObjectDistribution({
    ...{ ...objectOptions, otherReplicas, revision: options.revision, now },
    objects: new ClusterObjects({
      source: sources.get(clusterConfig)!,
      limits,
      objectOf: (kind, key) => informers.storeOf(resourceOf(kind)).get(key),
    }),
  });
  return {
    objects,
    /** Returns the last known result, and starts to read the Leases again. */
    isOnlyReplica: (): boolean => {
      void otherReplicas.refresh();
      return otherReplicas.isOnlyReplica === true;
    },
    actors: () => ({ distribution: distributionWithEffects(objects) }),
  };
}

export type DistributionService = ReturnType<typeof makeDistribution>;
