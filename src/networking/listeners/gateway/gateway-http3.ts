/** QUIC listeners of a gateway, in addition to the TCP listeners of the same servers (PILOT_ENABLE_QUIC_LISTENERS). */
import { create } from '@bufbuild/protobuf';
import { type Address, SocketAddress_Protocol } from '../../../gen/envoy/config/core/v3/address_pb.ts';
import { type FilterChain, FilterChainSchema } from '../../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { ListenerSchema } from '../../../gen/envoy/config/listener/v3/listener_pb.ts';
import { configKeyOf } from '../../../model/config/config.ts';
import { http3Offer } from '../../gateway/http3.ts';
import { type GatewayPort, type GatewayServer, gatewayOrigin } from '../../gateway/merge-gateways.ts';
import { dnsName } from '../../gateway/placed-server.ts';
import type { ConnectionContext, ProxyContext } from '../../inputs/connection-context.ts';
import { withOrigins } from '../../inputs/message-origin.ts';
import { policyKeys } from '../../inputs/policies.ts';
import { socketAddress, wildcardAddress } from '../../messages/address.ts';
import { type EnvoyResource, namedResource } from '../../messages/resource.ts';
import { misdirectedHost } from '../../routes/translate/misdirected-host.ts';
import { routeConfiguration } from '../../routes/translate/route-configuration.ts';
import { udpListenerName } from '../../traffic/resource-names.ts';
import { chainMatch } from '../filter-chain.ts';
import { UsedMatches } from '../free-match.ts';
import { buildListener } from '../listener.ts';
import { requestFilters } from '../network-filters/index.ts';
import { listenerAccessLogs } from '../observability/access-log.ts';
import { quicTls } from '../tls-context.ts';

export function quicListeners(gatewayPort: GatewayPort, proxy: ProxyContext): EnvoyResource[] {
  const { shape, push } = proxy;
  const portsByServer = new Map(
    gatewayPort.servers.map((server) => [server, http3Offer(server, shape, push)?.ports ?? []]),
  );
  return [...new Set([...portsByServer.values()].flat())].map((port) =>
    quicListener(port, gatewayPort, (server) => portsByServer.get(server)!.includes(port), proxy),
  );
}

function quicListener(
  port: number,
  gatewayPort: GatewayPort,
  speaksHttp3: (server: GatewayServer) => boolean,
  proxy: ProxyContext,
): EnvoyResource {
  const { shape, push, policies } = proxy;
  const bind = gatewayPort.bind ?? wildcardAddress(shape.ipFamily);
  const name = udpListenerName(bind, port);
  const connection: ConnectionContext = { ...proxy, direction: 'gateway', listener: name, port };
  const dependsOn = [...new Set(gatewayPort.servers.map(({ gateway }) => gateway))].map(configKeyOf);
  const listener = buildListener({
    ...{ name, bind, port, direction: 'outbound', bindToPort: true, mesh: push.mesh },
    filterChains: chainsOf(gatewayPort.servers, speaksHttp3, connection),
    accessLog: listenerAccessLogs(connection),
    more: {
      address: udpAddress(socketAddress(bind, port)),
      ...(gatewayPort.bind === undefined &&
        shape.ipFamily === 'dual' && { additionalAddresses: [{ address: udpAddress(socketAddress('::', port)) }] }),
      udpListenerConfig: { quicOptions: {}, downstreamSocketConfig: {} },
    },
  });
  return namedResource(ListenerSchema, listener, [...dependsOn, ...policyKeys(policies)]);
}

/**
 * Older servers have priority, as over TCP. A server with a wider wildcard must not serve the hosts of a server without HTTP/3, which may be
 * stricter. They get 421, and the client retries over TCP (RFC 9110 §15.5.20).
 */
function chainsOf(
  servers: readonly GatewayServer[],
  speaksHttp3: (server: GatewayServer) => boolean,
  connection: ConnectionContext,
): FilterChain[] {
  const serverWithCertificate = servers.find(speaksHttp3)!;
  const takenMatches = new UsedMatches();
  return servers.flatMap((server) => {
    const hosts = server.hosts.map(dnsName);
    return takenMatches.reserve({ serverNames: hosts.includes('*') ? [] : hosts }).map((freeMatch) => {
      const filterChainMatch = chainMatch(freeMatch);
      const supportsHttp3 = speaksHttp3(server);
      const routes = supportsHttp3
        ? server.routeName!
        : routeConfiguration('misdirected', [misdirectedHost('misdirected', ['*'])]);
      const chain = create(FilterChainSchema, {
        ...(filterChainMatch && { filterChainMatch }),
        filters: requestFilters(connection, { routes, grpcWeb: supportsHttp3, http3: true }),
        transportSocket: quicTls((supportsHttp3 ? server : serverWithCertificate).server.tls!, connection),
      });
      return withOrigins(chain, [gatewayOrigin(server)]);
    });
  });
}

function udpAddress(address: Address): Address {
  if (address.address.case === 'socketAddress') address.address.value.protocol = SocketAddress_Protocol.UDP;
  return address;
}
