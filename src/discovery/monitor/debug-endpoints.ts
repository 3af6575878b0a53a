/** `/debug/…`: what the control plane knows, for people (spec/discovery.md §9.1). */
import type { Config } from '../../model/config.ts';
import { kinds } from '../../model/kinds/index.ts';
import type { ConnectionView, WatchView } from '../ads/ads-observer.ts';
import type { EncodedCache } from '../push/encoded-cache.ts';
import type { MeshNode, MeshResources } from '../push/mesh-resources.ts';
import type { MeshState } from '../push/mesh-state.ts';
import type { HttpAnswer, HttpRequest } from './http-server.ts';
import { pushStatus } from './push-status.ts';

export interface DebugSources {
  readonly state: MeshState;
  readonly resources: MeshResources;
  readonly cache: EncodedCache;
  readonly connections: () => readonly ConnectionView[];
  /** Everything goes to everyone. */
  readonly pushAll: () => void;
  /** `provider/cluster` of the endpoints' shard. */
  readonly shard: string;
}

interface DebugEndpoint {
  readonly path: string;
  readonly description: string;
  readonly answer: (sources: DebugSources, query: URLSearchParams) => HttpAnswer | Promise<HttpAnswer>;
}

/** The word of the reference, which scripts look for. */
const notConnected = 'Proxy not connected to this Pilot instance. It may be connected to another instance.';

const endpoints: readonly DebugEndpoint[] = [
  {
    path: 'adsz',
    description: 'connected proxies and what they watch; ?push=true pushes everything to everyone',
    answer: (sources, query) => (query.get('push') ? pushToAll(sources) : ok(connectedClients(sources, query))),
  },
  {
    path: 'connections',
    description: 'connected proxies',
    answer: ({ connections }) => {
      const clients = connections().map(({ id, connectedAt, peer }) => ({
        connectionId: id,
        connectedAt,
        address: peer,
      }));
      return ok({ totalClients: clients.length, clients });
    },
  },
  {
    path: 'syncz',
    description: 'what each proxy was sent and what it acknowledged; ?namespace=NAME',
    answer: (sources, query) => ok(syncStatus(sources, query.get('namespace') ?? '')),
  },
  {
    path: 'config_dump',
    description: 'what a proxy was given, as its own /config_dump; ?proxyID=ID, &types=cds,lds,rds,eds, &include_eds',
    answer: (sources, query) =>
      withProxy(sources, query, async (connection, node) => {
        // The descriptors of all extensions: loaded when somebody asks.
        const { configDump } = await import('./config-dump.ts');
        return ok(configDump(connection, node, query));
      }),
  },
  {
    path: 'edsz',
    description: 'the endpoints that a proxy was given; ?proxyID=ID',
    answer: (sources, query) =>
      withProxy(sources, query, async (connection, node) => {
        const { endpointDump } = await import('./config-dump.ts');
        return ok(endpointDump(connection, node));
      }),
  },
  {
    path: 'configz',
    description: 'configuration objects in force',
    answer: ({ state }) => ok([...state.configs.byKey.values()].map(asKubernetesObject)),
  },
  {
    path: 'resourcesz',
    description: 'kinds of configuration that are read',
    answer: () =>
      ok(Object.values(kinds).flatMap(({ group, versions, kind }) => versions.map((v) => `${group}/${v}/${kind}`))),
  },
  {
    path: 'registryz',
    description: 'services of all registries',
    answer: ({ state }) =>
      ok(state.registry.services.map((service) => ({ ...service, exportTo: [...service.exportTo] }))),
  },
  { path: 'endpointz', description: 'endpoints of all services', answer: endpointShards },
  { path: 'endpointShardz', description: 'the same', answer: endpointShards },
  {
    path: 'instancesz',
    description: 'the service ports that each connected proxy serves',
    answer: ({ resources }) =>
      ok(Object.fromEntries([...resources.nodes].map(({ view }) => [view.id, view.serviceTargets.map(targetOf)]))),
  },
  { path: 'mesh', description: 'mesh configuration in force', answer: ({ state }) => ok(state.mesh) },
  { path: 'networkz', description: 'mesh networks in force', answer: ({ state }) => ok(state.settings.networks) },
  {
    path: 'push_status',
    description: 'what is odd about what was last pushed',
    answer: ({ state }) => ok(state.context === undefined ? {} : pushStatus(state.context)),
  },
  {
    path: 'cachez',
    description: 'the cache of encoded resources; ?clear=true empties it',
    answer: ({ cache, state }, query) => {
      if (query.get('clear') !== null) cache.clear(state.context);
      return ok({ size: cache.size, ...cache.counts });
    },
  },
];

/** Answers a request below `/debug`; undefined when the path is another. */
export function answerDebug(
  sources: DebugSources,
  { path, query, local }: HttpRequest,
): HttpAnswer | Promise<HttpAnswer> | undefined {
  if (path !== '/debug' && !path.startsWith('/debug/')) return undefined;
  if (!local) {
    return {
      status: 401,
      body: 'debug endpoints answer callers on this host only, as long as none can authenticate\n',
    };
  }
  const name = path.replace(/^\/debug\/?/, '');
  if (name === '') return { status: 200, body: indexPage(), contentType: 'text/html; charset=utf-8' };
  if (name === 'list') return ok(endpoints.map((endpoint) => endpoint.path));
  return endpoints.find((endpoint) => endpoint.path === name)?.answer(sources, query);
}

function ok(body: object): HttpAnswer {
  return { status: 200, body };
}

function indexPage(): string {
  const rows = endpoints.map((e) => `<li><a href="/debug/${e.path}">/debug/${e.path}</a>: ${e.description}</li>`);
  return `<!doctype html><title>pilot-discovery</title><h1>Debug endpoints</h1><p>?pretty indents.</p><ul>${rows.join('\n')}</ul>\n`;
}

function pushToAll({ connections, pushAll }: DebugSources): HttpAnswer {
  pushAll();
  return { status: 200, body: `Pushed to ${connections().length} servers\n` };
}

function connectedClients({ connections, resources }: DebugSources, query: URLSearchParams): object {
  const wanted = query.get('proxyID') ?? '';
  const clients = connections()
    .filter(({ id, node }) => node.startsWith(wanted) || id.startsWith(wanted))
    .map(({ id, node, connectedAt, peer, watches, identity }) => {
      const proxy = resources.nodesOf(node)[0]?.proxy;
      return {
        connectionId: id,
        connectedAt,
        address: peer,
        labels: proxy?.labels ?? {},
        metadata: identity.metadata,
        locality: proxy?.locality ?? '',
        watches: Object.fromEntries(watches.map(({ typeUrl, names }) => [typeUrl, names])),
      };
    });
  return { totalClients: clients.length, clients };
}

/** Names of types in the answer of `/debug/syncz`, by the type of resource. */
const syncNames: Readonly<Record<string, string>> = {
  'type.googleapis.com/envoy.config.cluster.v3.Cluster': 'cluster',
  'type.googleapis.com/envoy.config.listener.v3.Listener': 'listener',
  'type.googleapis.com/envoy.config.route.v3.RouteConfiguration': 'route',
  'type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment': 'endpoint',
  'type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig': 'extensionconfig',
};

function syncStatus({ connections, resources }: DebugSources, namespace: string): object[] {
  return connections().flatMap(({ node, watches }) => {
    const proxy = resources.nodesOf(node)[0]?.proxy;
    if (proxy === undefined || (namespace !== '' && proxy.configNamespace !== namespace)) return [];
    const nonces = Object.entries(syncNames).flatMap(([type, name]) => [
      [`${name}_sent`, watchOf(watches, type)?.nonceSent ?? ''],
      [`${name}_acked`, watchOf(watches, type)?.nonceAcked ?? ''],
    ]);
    return [
      {
        cluster_id: proxy.clusterId,
        proxy: proxy.id,
        proxy_type: proxy.type,
        istio_version: String(proxy.metadata.ISTIO_VERSION ?? ''),
        ...Object.fromEntries(nonces),
        resources: Object.fromEntries(
          watches.map(({ typeUrl, nonceSent, nonceAcked, sentAt, lastError }) => [
            typeUrl,
            { sent: nonceSent, acked: nonceAcked, sentTime: sentAt ?? '', lastError },
          ]),
        ),
      },
    ];
  });
}

function watchOf(watches: readonly WatchView[], typeUrl: string): WatchView | undefined {
  return watches.find((watch) => watch.typeUrl === typeUrl);
}

function withProxy(
  { connections, resources }: DebugSources,
  query: URLSearchParams,
  answer: (connection: ConnectionView, node: MeshNode) => HttpAnswer | Promise<HttpAnswer>,
): HttpAnswer | Promise<HttpAnswer> {
  const wanted = query.get('proxyID') ?? '';
  if (wanted === '') {
    return {
      status: 400,
      body: 'You must provide a proxyID in the query string: ?proxyID=NODE_ID, as /debug/adsz lists them\n',
    };
  }
  const connection = connections().find(({ id, node }) => node === wanted || id.startsWith(wanted));
  const node = connection && resources.nodesOf(connection.node)[0];
  return connection === undefined || node === undefined
    ? { status: 404, body: `${notConnected}\n` }
    : answer(connection, node);
}

function asKubernetesObject(config: Config): object {
  const { apiVersion, kind, name, namespace, labels, annotations, resourceVersion, creationTimestamp, spec } = config;
  const metadata = {
    name,
    namespace,
    resourceVersion,
    // 0: the file does not say.
    ...(creationTimestamp > 0 && { creationTimestamp: new Date(creationTimestamp).toISOString() }),
    labels,
    annotations,
  };
  return { apiVersion, kind, metadata, spec, ...(config.status !== undefined && { status: config.status }) };
}

function endpointShards({ state, shard }: DebugSources): HttpAnswer {
  const hosts: Record<string, Record<string, object>> = {};
  for (const [host, byNamespace] of state.registry.endpoints) {
    hosts[host] = Object.fromEntries(
      [...byNamespace].map(([namespace, list]) => [
        namespace,
        {
          Shards: { [shard]: list },
          ServiceAccounts: [...new Set(list.map(({ serviceAccount }) => serviceAccount).filter(Boolean))],
        },
      ]),
    );
  }
  return ok(hosts);
}

function targetOf({ service, port, targetPort }: MeshNode['view']['serviceTargets'][number]): object {
  return { service: `${service.namespace}/${service.hostname}`, port: port.number, name: port.name, targetPort };
}
