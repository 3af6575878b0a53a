/**
 * Builds filter chains for ports that no service defines, whose protocol is unknown. Ports with their own
 * PeerAuthentication mode have separate chains.
 */
import { create } from '@bufbuild/protobuf';
import { FilterChainSchema } from '../../../gen/envoy/config/listener/v3/listener_components_pb.ts';
import { type PeerMode, peerModeOf } from '../../../model/push-context/mutual-tls-mode.ts';
import type { ConnectionContext, ProxyContext } from '../../inputs/connection-context.ts';
import { withOrigins } from '../../inputs/message-origin.ts';
import { passthroughRoutes } from '../../routes/translate/inbound.ts';
import { activePeerModes, peerOrigins } from '../../traffic/peer-mode.ts';
import { inboundPassthroughCluster, virtualInboundListener } from '../../traffic/resource-names.ts';
import { acceptsHttp10 } from '../http10.ts';
import { requestFilters, tcpFilters } from '../network-filters/index.ts';
import {
  chainMatchOf,
  detectionOf,
  filtersOfRow,
  type InboundPort,
  memoizeLazily,
  terminatedTlsSocket,
} from './inbound-chains.ts';
import { inboundRows } from './inbound-table.ts';

/** @param describedPorts ports of services and ingress listeners */
export function passthroughPorts(proxy: ProxyContext, describedPorts: ReadonlySet<number>): readonly InboundPort[] {
  const modes = activePeerModes(proxy.shape, proxy.push);
  const namedPorts = [...modes.ports.keys()].filter((port) => !describedPorts.has(port)).sort((a, b) => a - b);
  return [
    passthroughPort(proxy, modes.mode, 0),
    ...namedPorts.map((port) => passthroughPort(proxy, peerModeOf(modes, port), port)),
  ];
}

/** @param port 0 for all ports without separate chains */
function passthroughPort(proxy: ProxyContext, mode: PeerMode, port: number): InboundPort {
  const http10 = acceptsHttp10(proxy);
  const rows = inboundRows(mode, 'unknown', http10);
  const names = { requests: 'virtualInbound-catchall-http', bytes: virtualInboundListener };
  const context = (listener: string): ConnectionContext => ({ ...proxy, direction: 'inbound', listener, port });
  const filters = {
    requests: memoizeLazily(() => requestFilters(context(names.requests), { routes: passthroughRoutes(), http10 })),
    bytes: memoizeLazily(() =>
      tcpFilters(context(names.bytes), { destinations: [{ cluster: inboundPassthroughCluster, weight: 0 }] }),
    ),
  };
  const origins = peerOrigins(proxy.policies, port);
  const chains = rows.map((row) =>
    withOrigins(
      create(FilterChainSchema, {
        name: names[row.content],
        filterChainMatch: chainMatchOf(row, port === 0 ? undefined : port),
        ...filtersOfRow(row, filters, terminatedTlsSocket(row, proxy)),
      }),
      origins,
    ),
  );
  return { port, chains, ...detectionOf(rows) };
}
