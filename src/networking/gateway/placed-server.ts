import type { Config } from '../../model/config/config.ts';
import type { Gateway, Server } from '../../model/kinds/gateway/gateway.ts';

export interface ServerOnPort {
  readonly gateway: Config<Gateway>;
  readonly server: Server;
  readonly index: number;
  readonly port: number;
  /** Set if client certificates cannot be verified as configured. */
  readonly closedReason?: string;
}

export interface ServerPlacement {
  readonly serverOnPort: ServerOnPort;
  /** `undefined` for all addresses, also if the Gateway lists them. */
  readonly bind: string | undefined;
  readonly unavailableReason: string | undefined;
}

/** Several HTTP servers, or several TLS servers, can share a port. A TCP server cannot share its port. */
export type ServerKind = 'http' | 'tls' | 'tcp';

export function serverKindOf({ port, tls }: Server): ServerKind {
  if (port.protocol === 'HTTPS' || port.protocol === 'TLS') return 'tls';
  if (port.protocol === 'HTTP' || port.protocol === 'HTTP2' || port.protocol.startsWith('GRPC')) return 'http';
  return tls === undefined ? 'tcp' : 'tls';
}

export function isPassthrough(server: Server): boolean {
  return server.tls === undefined || server.tls.mode === 'PASSTHROUGH' || server.tls.mode === 'AUTO_PASSTHROUGH';
}

/** Name by which VirtualServices refer to a Gateway. */
export function gatewayName(gateway: Config<Gateway>): string {
  return `${gateway.namespace}/${gateway.name}`;
}

/** Converts `shop/reviews.example.com` to `reviews.example.com`. */
export function dnsName(serverHost: string): string {
  return serverHost.slice(serverHost.indexOf('/') + 1);
}

/** Servers with equal keys share a listener. */
export function listenerKey(bind: string | undefined, port: number): string {
  return `${bind ?? ''}~${port}`;
}
