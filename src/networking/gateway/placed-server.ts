import type { Config } from '../../model/config/config.ts';
import type { Gateway, Server } from '../../model/kinds/gateway/gateway.ts';

export interface ServerOnPort {
  readonly gateway: Config<Gateway>;
  readonly server: Server;
  readonly index: number;
  /** The port that the proxy listens on. */
  readonly port: number;
  /**
   * Set if client certificates cannot be verified as configured, with the reason. Its connections are closed and not
   * given to other servers of the port, which may require less.
   */
  readonly closed?: string;
}

export interface PlacedServer {
  readonly serverOnPort: ServerOnPort;
  /** `undefined` for all addresses. Servers that write out all addresses share its listener. */
  readonly bind: string | undefined;
  /** Why the proxy cannot listen on the port. */
  readonly unavailable: string | undefined;
}

/** HTTP servers can share a port, and TLS servers can. TCP servers cannot. */
export type ServerKind = 'http' | 'tls' | 'tcp';

export function serverKindOf({ port, tls }: Server): ServerKind {
  if (port.protocol === 'HTTPS' || port.protocol === 'TLS') return 'tls';
  if (port.protocol === 'HTTP' || port.protocol === 'HTTP2' || port.protocol.startsWith('GRPC')) return 'http';
  return tls === undefined ? 'tcp' : 'tls';
}

export function isPassthrough(server: Server): boolean {
  return server.tls === undefined || server.tls.mode === 'PASSTHROUGH' || server.tls.mode === 'AUTO_PASSTHROUGH';
}

/** Name of a Gateway object in virtual services. */
export function gatewayName(gateway: Config<Gateway>): string {
  return `${gateway.namespace}/${gateway.name}`;
}

/** `shop/reviews.example.com` → `reviews.example.com`. */
export function dnsName(serverHost: string): string {
  return serverHost.slice(serverHost.indexOf('/') + 1);
}

/** Servers of one address and port share a listener. */
export function listenerKey(bind: string | undefined, port: number): string {
  return `${bind ?? ''}~${port}`;
}
