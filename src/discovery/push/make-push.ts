import { messageOf } from '../../runtime/errors.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { combinedLimit } from '../config/limits/namespace-budgets.ts';
import type { LimitListener, MeshConfigs } from '../config/snapshots/mesh-configs.ts';
import type { KeySets } from '../jwks/key-sets.ts';
import type { DiscoveryOptions } from '../options/discovery-options.ts';
import { EncodedCache } from './cache/encoded-cache.ts';
import { MeshState, type MeshStateOptions } from './contexts/mesh-state.ts';
import { MeshResources, type MeshResourcesOptions } from './mesh-resources.ts';
import { pushWithEffects } from './push.effects.ts';
import { resourceReferences } from './resource-references.ts';

export interface PushParts
  extends Pick<MeshStateOptions, 'settings'>,
    Pick<MeshResourcesOptions, 'secretAccess' | 'onCredentialsNeeded' | 'readingOf' | 'rejections' | 'responses'> {
  readonly options: DiscoveryOptions;
  readonly meshConfigs: MeshConfigs;
  readonly cluster: MeshStateOptions['cluster'];
  readonly keySets: KeySets;
  readonly log: Logger;
}

export function makePush({ options, settings, meshConfigs, cluster, keySets, log, ...resourceParts }: PushParts) {
  const { domain, clusterId, registries, registryOptions, features, clusterAliases } = options;
  const state = new MeshState({
    ...{ settings, domain, clusterId, meshConfigs, registries, registryOptions, features, keySets },
    ...(cluster && { cluster }),
    maxEndpointsPerNamespace: options.configLimits.maxEndpointsPerNamespace,
  });
  const cache = new EncodedCache({
    maxEntries: options.cacheEntries,
    maxBytes: options.cacheBytes,
    onThrashing: ({ rebuiltCount, entries, bytes }) =>
      log.warn('cache.thrashing', { remade: rebuiltCount, entries, bytes }),
    onUnencodable: ({ name, schema }, error) => {
      log.error('resource.unencodable', { resource: name, type: schema.typeName, error: messageOf(error) });
    },
    cachesCds: options.cachesCds,
    cachesRds: options.cachesRds,
  });
  const resources = new MeshResources({
    context: () => state.context,
    cache,
    clusterAliases,
    ...resourceParts,
    warn: (node, reason) => log.warn('proxy.degraded', { node, reason }),
  });
  state.onPublished((publication) => resources.recordPublication(publication));
  return {
    state,
    cache,
    resources,
    references: resourceReferences,
    onLimited: (listener: LimitListener): void => {
      const { objects } = state.registries;
      const report = (key: string): void => {
        const [reduced, objectLimit] = [meshConfigs.limitOf(key), objects.limitOf(key)];
        listener(key, reduced && objectLimit ? combinedLimit(reduced, objectLimit) : (objectLimit ?? reduced));
      };
      meshConfigs.onLimited(report);
      state.onReported(({ limits }) => {
        for (const [key] of limits) report(key);
      });
      keySets.onLimited(listener);
    },
    actor: (onPublished: (ms: number) => void) => pushWithEffects(state, onPublished),
  };
}
