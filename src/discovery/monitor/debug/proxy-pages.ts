import { scalarText } from '../../../runtime/scalar-text.ts';
import type { MeshNode } from '../../push/mesh-resources.ts';
import type { ConnectionView, WatchView } from '../../xds/ads-observer.ts';
import type { HttpReply } from '../http/http-server.ts';
import {
  type DebugPage,
  type DebugSources,
  isParameterSet,
  matchesProxyId,
  okReply,
  type PageRequest,
  textReply,
  withProxy,
} from './debug-page.ts';
import { describeProxies } from './proxy-description.ts';
import { proxiesPage } from './proxy-html.ts';
import { syncedTypes, syncStateOf } from './sync-state.ts';

export const proxyPages: readonly DebugPage[] = [
  {
    path: 'proxyz',
    description:
      'what each proxy acknowledged, rejected (with the reason) and is being sent; ?proxyID=ID for one, ?allWaits for more than 20 waits of a type',
    respond: proxies,
  },
  {
    path: 'adsz',
    description: 'connected proxies and what they watch; ?proxyID=ID; POST ?push=true pushes everything to all proxies',
    changes: (query) => isParameterSet(query.get('push')),
    respond: (sources, { query }) =>
      isParameterSet(query.get('push')) ? pushToAll(sources) : okReply(connectedClients(sources, query)),
  },
  {
    path: 'connections',
    description: 'connected proxies',
    respond: ({ connections }) => {
      const clients = connections().map(({ id, connectedAt, peer }) => ({
        connectionId: id,
        connectedAt,
        address: peer,
      }));
      return okReply({ totalClients: clients.length, clients });
    },
  },
  {
    path: 'syncz',
    description: 'nonces that each proxy was sent and acknowledged; ?namespace=NAME',
    respond: (sources, { query }) => okReply(syncStatus(sources, query.get('namespace') ?? '')),
  },
  {
    path: 'instancesz',
    description: 'service ports that each connected proxy serves',
    respond: ({ resources }) =>
      okReply(
        Object.fromEntries(
          [...resources.nodes].map(({ proxy, shape }) => [proxy.id, shape.serviceTargets.map(targetOf)]),
        ),
      ),
  },
  {
    path: 'force_disconnect',
    description: 'POST closes the xDS stream of ?proxyID=ID (only with UNSAFE_ENABLE_ADMIN_ENDPOINTS)',
    changes: () => true,
    respond: (sources, request) =>
      sources.unsafeAdmin
        ? withProxy(sources, request, (connection) =>
            sources.disconnect(connection) ? textReply('OK') : textReply('the proxy has disconnected', 404),
          )
        : textReply('not found: set UNSAFE_ENABLE_ADMIN_ENDPOINTS=true to enable this page', 404),
  },
];

function proxies(sources: DebugSources, { query, headers }: PageRequest): HttpReply {
  const proxyId = query.get('proxyID') ?? '';
  const matchingConnections = sources.connections().filter((connection) => matchesProxyId(connection, proxyId));
  if (proxyId !== '' && matchingConnections.length === 0)
    return textReply('Proxy not connected to this Pilot instance.', 404);
  const descriptions = describeProxies(matchingConnections, sources.resources, {
    allWaits: isParameterSet(query.get('allWaits')),
  });
  if (headers.accept?.includes('text/html') !== true) return okReply(descriptions);
  return {
    status: 200,
    body: proxiesPage(descriptions, { showsDetails: proxyId !== '' }),
    contentType: 'text/html; charset=utf-8',
    headers: { 'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'" },
  };
}

function pushToAll({ connections, pushAll }: DebugSources): HttpReply {
  pushAll();
  return textReply(`Pushed to ${connections().length} servers`);
}

function connectedClients({ connections, resources }: DebugSources, query: URLSearchParams): object {
  const proxyId = query.get('proxyID') ?? '';
  const clients = connections()
    .filter((connection) => connection.node.startsWith(proxyId) || matchesProxyId(connection, proxyId))
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
      // The percentage is 0 or 100, because a proxy applies all endpoints of a response or none.
      ...(name === 'endpoint' ? ([['endpoint_percent', percentOf(watch)]] as [string, number][]) : []),
    ];
  });
  return Object.fromEntries(nonces);
}

function percentOf(watch: WatchView | undefined): number {
  return syncStateOf(watch) === 'SYNCED' ? 100 : 0;
}

/** A linear search per proxy would be quadratic. */
function nodesById(nodes: Iterable<MeshNode>): Map<string, MeshNode> {
  return new Map([...nodes].map((node) => [node.proxy.id, node]));
}

function targetOf({ service, port, targetPort }: MeshNode['shape']['serviceTargets'][number]): object {
  return { service: `${service.namespace}/${service.hostname}`, port: port.number, name: port.name, targetPort };
}
