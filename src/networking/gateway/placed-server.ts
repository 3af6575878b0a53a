/** Servers of Gateway objects on ports of a proxy, before servers of one port are merged. */
import type { Config } from '../../model/config/config.ts';
import type { Gateway, Server } from '../../model/kinds/gateway/gateway.ts';

/** One server of a Gateway object on one port of the proxy. */
export interface ServerOnPort {
  readonly gateway: Config<Gateway>;
  readonly server: Server;
  /** The server's place in the object. */
  readonly index: number;
  /** The port that the proxy listens on. */
  readonly port: number;
  /**
   * Why it lets nobody in: what it asks of its clients cannot be asked. Its connections are closed, and go to no other server
   * of the port, which may ask for less.
   */
  readonly closed?: string;
}

export interface PlacedServer {
  readonly one: ServerOnPort;
  /** Absent for all addresses, which some servers say and others do not: they share a listener. */
  readonly bind: string | undefined;
  /** Why the port cannot be listened on. */
  readonly notThere: string | undefined;
}

/** What may share a port: plain HTTP with itself, TLS with itself; plain TCP with nothing. */
export type ServerKind = 'http' | 'tls' | 'tcp';

export function kindOf({ port, tls }: Server): ServerKind {
  if (port.protocol === 'HTTPS' || port.protocol === 'TLS') return 'tls';
  if (port.protocol === 'HTTP' || port.protocol === 'HTTP2' || port.protocol.startsWith('GRPC')) return 'http';
  return tls === undefined ? 'tcp' : 'tls';
}

export function isPassthrough(server: Server): boolean {
  return server.tls === undefined || server.tls.mode === 'PASSTHROUGH' || server.tls.mode === 'AUTO_PASSTHROUGH';
}

/** Name of a Gateway object as virtual services refer to it. */
export function gatewayName(gateway: Config<Gateway>): string {
  return `${gateway.namespace}/${gateway.name}`;
}

/** `shop/reviews.example.com` → `reviews.example.com`. */
export function dnsName(serverHost: string): string {
  return serverHost.slice(serverHost.indexOf('/') + 1);
}

/** Key of a listener: servers of one bind and port share it. */
export function listenerKey(bind: string | undefined, port: number): string {
  return `${bind ?? ''}~${port}`;
}
