/** Distribution: which objects of a cluster the proxies have applied or rejected, and the actor that finds it out. */
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

export interface DistributionParts extends Pick<ObjectDistributionOptions, 'configs' | 'proxies' | 'made'> {
  readonly cluster: {
    readonly server: Pick<ApiServer, 'list'>;
    readonly informers: InformerEffects;
    /** Sources by their address. */
    readonly sources: ReadonlyMap<string, ClusterSource>;
    /** Name of this process in Leases. */
    readonly identity: string;
  };
  readonly options: { readonly namespace: string; readonly revision: string; readonly leaseMs: number };
  readonly limits: Pick<MeshConfigs, 'onLimited'>;
  /** Whether this replica writes the statuses. */
  readonly isWriter: () => boolean;
  /** Called when other replicas may serve proxies than before. */
  readonly replicasChanged: () => void;
  readonly log: Pick<Logger, 'warn'>;
}

export function makeDistribution(parts: DistributionParts) {
  const { cluster, options, limits, isWriter, replicasChanged, log, ...ofObjects } = parts;
  const { server, informers, sources, identity } = cluster;
  const now = (): number => performance.now();
  const others = new OtherReplicas({ ...options, server, identity, isWriter, now, changed: replicasChanged, log });
  const objects = new ObjectDistribution({
    ...{ ...ofObjects, others, revision: options.revision, now },
    objects: new ClusterObjects({
      source: sources.get(clusterConfig)!,
      limits,
      objectOf: (kind, key) => informers.storeOf(resourceOf(kind)).get(key),
    }),
  });
  return {
    objects,
    /** Whether no other replica may serve proxies, as far as is known; starts to read the Leases again. */
    isOnlyReplica: (): boolean => {
      void others.look();
      return others.isAlone === true;
    },
    actors: () => ({ distribution: distributionWithEffects(objects) }),
  };
}

export type Distribution = ReturnType<typeof makeDistribution>;
