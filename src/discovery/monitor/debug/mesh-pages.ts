import { kinds } from '../../../model/kinds/index.ts';
import { type DebugPage, type DebugSources, okReply, textReply } from './debug-page.ts';
import { asKubernetesObject } from './kubernetes-object.ts';

export const meshPages: readonly DebugPage[] = [
  {
    path: 'configz',
    description: 'configuration objects that apply, as Kubernetes objects, without the data of Secrets',
    respond: ({ state }) =>
      okReply(state.allObjects.map((config) => asKubernetesObject(config, state.mesh.rootNamespace))),
  },
  {
    path: 'resourcesz',
    description: 'supported kinds of configuration',
    respond: () =>
      okReply(
        Object.values(kinds).flatMap(({ group, versions, kind, writtenAs = kind }) =>
          versions.map((version) => [group, version, writtenAs].filter(Boolean).join('/')),
        ),
      ),
  },
  {
    path: 'registryz',
    description: 'services of all registries',
    respond: ({ state }) => okReply(state.registry.services),
  },
  {
    path: 'endpointz',
    description: 'endpoints of all services; ?brief=1 for text',
    respond: (sources, { query }) =>
      query.get('brief') === null ? okReply(endpointShards(sources)) : textReply(briefEndpoints(sources)),
  },
  {
    path: 'endpointShardz',
    description: 'endpoints of all services by registry and cluster',
    respond: (sources) => okReply(endpointShards(sources)),
  },
  { path: 'mesh', description: 'current mesh configuration', respond: ({ state }) => okReply(state.mesh) },
  { path: 'networkz', description: 'current mesh networks', respond: ({ state }) => okReply(state.settings.networks) },
  {
    path: 'clusterz',
    description: 'Kubernetes clusters that are watched, and their sync status',
    respond: (sources) => okReply(clusters(sources)),
  },
  {
    path: 'mcsz',
    description: 'Kubernetes multi-cluster services: always empty, they are not supported',
    respond: () => okReply([]),
  },
  {
    path: 'inject',
    description: 'sidecar injector: settings, webhook configurations, and pairs of them that select the same pods',
    respond: ({ describeInjection }) =>
      describeInjection === undefined
        ? textReply('not found: this control plane serves no webhooks, see --httpsAddr', 404)
        : okReply(describeInjection()),
  },
];

function endpointShards({ state }: DebugSources): object {
  const hosts = new Map<string, Map<string, object>>();
  for (const { hostname, namespace, shards, serviceAccounts } of state.registries.shards()) {
    const namespaces = hosts.get(hostname) ?? new Map<string, object>();
    hosts.set(hostname, namespaces.set(namespace, { Shards: shards, ServiceAccounts: serviceAccounts }));
  }
  return Object.fromEntries([...hosts].map(([host, namespaces]) => [host, Object.fromEntries(namespaces)]));
}

/** The local cluster has no Secret. A synced cluster can become unreachable later. */
function clusters({ state, clusterId, secretOfCluster = () => '', unreachableCluster }: DebugSources): object[] {
  const ids = new Set([clusterId, ...state.registries.registries.map((registry) => registry.clusterId)]);
  return [...ids].map((id) => {
    const registries = state.registries.registries.filter((registry) => registry.clusterId === id);
    const isSynced = registries.every((registry) => registry.hasSynced());
    const reason = unreachableCluster?.(id);
    const syncStatus = reason !== undefined ? 'unreachable' : isSynced ? 'synced' : 'syncing';
    return { id, secretName: secretOfCluster(id), syncStatus, ...(reason !== undefined && { reason }) };
  });
}

/** Formats lines such as `host|port namespace address:port …`. */
function briefEndpoints({ state }: DebugSources): string {
  const outputLines: string[] = [];
  for (const [host, entriesByNamespace] of state.registry.endpoints) {
    for (const [namespace, list] of entriesByNamespace) {
      for (const [port, endpoints] of Map.groupBy(list, ({ servicePortName }) => servicePortName)) {
        outputLines.push(
          `${host}|${port} ${namespace} ${endpoints.map(({ address, port: endpointPort }) => `${address}:${endpointPort}`).join(' ')}`,
        );
      }
    }
  }
  return outputLines.sort().join('\n');
}
