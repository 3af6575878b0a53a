/** Pages about connected proxies. */
import { scalarText } from '../../../runtime/scalar-text.ts';
import type { MeshNode } from '../../push/mesh-resources.ts';
import type { ConnectionView, WatchView } from '../../xds/ads-observer.ts';
import type { HttpAnswer } from '../http/http-server.ts';
import {
  type DebugPage,
  type DebugSources,
  isMeant,
  isOn,
  ok,
  type PageRequest,
  text,
  withProxy,
} from './debug-page.ts';
import { describeProxies } from './proxy-description.ts';
import { proxiesPage } from './proxy-html.ts';
import { syncedTypes, syncStateOf } from './sync-state.ts';

export const proxyPages: readonly DebugPage[] = [
  {
    path: 'proxyz',
    description: 'what each proxy acknowledged, rejected (with the reason) and is being sent; ?proxyID=ID for one',
    answer: proxies,
  },
  {
    path: 'adsz',
    description: 'connected proxies and what they watch; ?proxyID=ID; POST ?push=true pushes everything to all proxies',
    changes: (query) => isOn(query.get('push')),
    answer: (sources, { query }) =>
      isOn(query.get('push')) ? pushToAll(sources) : ok(connectedClients(sources, query)),
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
    description: 'nonces that each proxy was sent and acknowledged; ?namespace=NAME',
    answer: (sources, { query }) => ok(syncStatus(sources, query.get('namespace') ?? '')),
  },
  {
    path: 'instancesz',
    description: 'service ports that each connected proxy serves',
    answer: ({ resources }) =>
      ok(
        Object.fromEntries(
          [...resources.nodes].map(({ proxy, shape }) => [proxy.id, shape.serviceTargets.map(targetOf)]),
        ),
      ),
  },
  {
    path: 'force_disconnect',
    description: 'POST closes the xDS stream of ?proxyID=ID (only with UNSAFE_ENABLE_ADMIN_ENDPOINTS)',
    changes: () => true,
    answer: (sources, request) =>
      sources.unsafeAdmin
        ? withProxy(sources, request, (connection) =>
            sources.disconnect(connection) ? text('OK') : text('the proxy has disconnected', 404),
          )
        : text('not found: set UNSAFE_ENABLE_ADMIN_ENDPOINTS=true to enable this page', 404),
  },
];

function proxies(sources: DebugSources, { query, headers }: PageRequest): HttpAnswer {
  const wanted = query.get('proxyID') ?? '';
  const meant = sources.connections().filter((connection) => isMeant(connection, wanted));
  if (wanted !== '' && meant.length === 0) return text('Proxy not connected to this Pilot instance.', 404);
  const found = describeProxies(meant, sources.resources);
  if (headers.accept?.includes('text/html') !== true) return ok(found);
  return {
    status: 200,
    body: proxiesPage(found, { one: wanted !== '' }),
    contentType: 'text/html; charset=utf-8',
    headers: { 'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'" },
  };
}

function pushToAll({ connections, pushAll }: DebugSources): HttpAnswer {
  pushAll();
  return text(`Pushed to ${connections().length} servers`);
}

function connectedClients({ connections, resources }: DebugSources, query: URLSearchParams): object {
  const wanted = query.get('proxyID') ?? '';
  const clients = connections()
    .filter((connection) => connection.node.startsWith(wanted) || isMeant(connection, wanted))
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

function syncStatus({ connections, resources }: DebugSources, namespace: string): object[] {
  const nodes = nodesById(resources.nodes);
  return connections().flatMap((connection) => {
    const proxy = nodes.get(connection.node)?.proxy;
    if (proxy === undefined || (namespace !== '' && proxy.configNamespace !== namespace)) return [];
    const version = scalarText(proxy.metadata.ISTIO_VERSION);
    return [
      {
        cluster_id: proxy.clusterId,
        proxy: proxy.name,
        proxy_type: proxy.type,
        istio_version: version,
        proxy_version: version,
        ...noncesOf(connection),
        resources: Object.fromEntries(
          connection.watches.map(({ typeUrl, nonceSent, nonceAcked, sentAt, lastError }) => [
            typeUrl,
            { sent: nonceSent, acked: nonceAcked, sentTime: sentAt ?? '', lastError },
          ]),
        ),
      },
    ];
  });
}

function noncesOf({ watches }: ConnectionView): Record<string, string | number> {
  const nonces = syncedTypes.flatMap(([name, typeUrl]): [string, string | number][] => {
    const watch = watches.find((candidate) => candidate.typeUrl === typeUrl);
    return [
      [`${name}_sent`, watch?.nonceSent ?? ''],
      [`${name}_acked`, watch?.nonceAcked ?? ''],
      // A response has all endpoints or those that changed: the proxy has taken over all of them, or it has not.
      ...(name === 'endpoint' ? ([['endpoint_percent', percentOf(watch)]] as [string, number][]) : []),
    ];
  });
  return Object.fromEntries(nonces);
}

function percentOf(watch: WatchView | undefined): number {
  return syncStateOf(watch) === 'SYNCED' ? 100 : 0;
}

/** Nodes by id, for pages about all proxies: looking each up among all would cost the square of their number. */
function nodesById(nodes: Iterable<MeshNode>): Map<string, MeshNode> {
  return new Map([...nodes].map((node) => [node.proxy.id, node]));
}

function targetOf({ service, port, targetPort }: MeshNode['shape']['serviceTargets'][number]): object {
  return { service: `${service.namespace}/${service.hostname}`, port: port.number, name: port.name, targetPort };
}
