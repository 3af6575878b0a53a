import { diagnosticsInTurns } from '../diagnostics/push-status.ts';
import { type DebugPage, isParameterSet, okReply } from './debug-page.ts';
import { asKubernetesObject } from './kubernetes-object.ts';

export const pushPages: readonly DebugPage[] = [
  {
    path: 'push_status',
    description: 'findings and warnings about the last push, by object',
    respond: async ({ state, resources }) => okReply(await diagnosticsInTurns(state, resources.nodes)),
  },
  {
    path: 'pushcontext',
    description: 'current push context: version, authorization policies, gateways of networks',
    respond: ({ state }) => {
      const { context, configs, settings } = state;
      const policies = [...configs.byKey.values()].filter(({ kind }) => kind === 'AuthorizationPolicy');
      const resolvedGateways = context?.networkGateways.allGateways ?? [];
      const resolvedNetworks = new Set(resolvedGateways.map(({ network }) => network));
      return okReply({
        version: context?.version ?? '',
        services: context?.services.length ?? 0,
        AuthorizationPolicies: policies.map((policy) => asKubernetesObject(policy, state.mesh.rootNamespace)),
        NetworkGateways: resolvedGateways,
        // Gateways of mesh networks without any resolved address.
        UnresolvedGateways: Object.entries(settings.networks.networks).flatMap(([network, { gateways }]) =>
          resolvedNetworks.has(network) ? [] : gateways.map((gateway) => ({ network, ...gateway })),
        ),
      });
    },
  },
  {
    path: 'cachez',
    description: 'cache of encoded xDS resources; ?sizes=true for bytes, POST ?clear=true empties it',
    changes: (query) => isParameterSet(query.get('clear')),
    respond: ({ cache, state }, { query }) => {
      if (isParameterSet(query.get('clear'))) {
        cache.clear(state.context);
        return { status: 200, body: 'Cache cleared\n' };
      }
      return okReply({
        size: cache.size,
        ...cache.counts,
        ...(isParameterSet(query.get('sizes')) && { sizes: cache.sizes() }),
      });
    },
  },
];
