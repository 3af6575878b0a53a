/** Pages about what is made of the mesh: the push context and the cache. */
import { statusInTurns } from '../diagnostics/push-status.ts';
import { type DebugPage, isOn, ok } from './debug-page.ts';
import { asKubernetesObject } from './kubernetes-object.ts';

export const pushPages: readonly DebugPage[] = [
  {
    path: 'push_status',
    description: 'findings and warnings about the last push, by object',
    answer: async ({ state, resources }) => ok(await statusInTurns(state, resources.nodes)),
  },
  {
    path: 'pushcontext',
    description: 'current push context: version, authorization policies, gateways of networks',
    answer: ({ state }) => {
      const { context, configs, settings } = state;
      const policies = [...configs.byKey.values()].filter(({ kind }) => kind === 'AuthorizationPolicy');
      const resolved = context?.networkGateways.all ?? [];
      const known = new Set(resolved.map(({ network }) => network));
      return ok({
        version: context?.version ?? '',
        services: context?.services.length ?? 0,
        AuthorizationPolicies: policies.map((policy) => asKubernetesObject(policy, state.mesh.rootNamespace)),
        NetworkGateways: resolved,
        // Named in the mesh networks, and of no known address.
        UnresolvedGateways: Object.entries(settings.networks.networks).flatMap(([network, { gateways }]) =>
          known.has(network) ? [] : gateways.map((gateway) => ({ network, ...gateway })),
        ),
      });
    },
  },
  {
    path: 'cachez',
    description: 'cache of encoded xDS resources; ?sizes=true for bytes, POST ?clear=true empties it',
    changes: (query) => isOn(query.get('clear')),
    answer: ({ cache, state }, { query }) => {
      if (isOn(query.get('clear'))) {
        cache.clear(state.context);
        return { status: 200, body: 'Cache cleared\n' };
      }
      return ok({
        size: cache.size,
        ...cache.counts,
        ...(isOn(query.get('sizes')) && { sizes: cache.sizes() }),
      });
    },
  },
];
