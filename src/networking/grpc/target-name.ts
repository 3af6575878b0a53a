/** Parses listener names of proxyless gRPC: a client requests its target, a server its own address. */
import { isIP } from 'node:net';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { Port, Service } from '../../model/services/service.ts';
import type { ProxyReach } from '../traffic/reach.ts';

/** Prefix of server listener names, as in `server_listener_resource_name_template` of the bootstrap file. */
export const serverListenerPrefix = 'xds.istio.io/grpc/lds/inbound/';

export interface ServerAddress {
  readonly address: string;
  readonly port: number;
}

/** Returns `::` and 7070 for `xds.istio.io/grpc/lds/inbound/[::]:7070`. */
export function serverAddressIn(name: string): ServerAddress | undefined {
  if (!name.startsWith(serverListenerPrefix)) return undefined;
  const [, bracketedAddress, plainAddress, port] =
    /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(name.slice(serverListenerPrefix.length)) ?? [];
  const address = bracketedAddress ?? plainAddress ?? '';
  return isIP(address) === 0 ? undefined : { address, port: Number(port) };
}

const maxHostLength = 253;

export interface ClientTarget {
  readonly service: Service;
  readonly port: Port;
}

/**
 * A target is, for example, `echo.shop.svc.cluster.local:7070`, `echo.shop:7070` or `echo:7070`. The port defaults to the service's only port.
 *
 * @returns a reason if no service port matches
 */
export function clientTarget(name: string, { dnsDomain }: ProxyShape, reach: ProxyReach): ClientTarget | string {
  const [, host = '', number] = /^([^:]+)(?::(\d{1,5}))?$/.exec(name) ?? [];
  if (host === '') return 'target must be a host name with an optional port';
  if (host.length > maxHostLength) return `host must have at most ${maxHostLength} characters, got ${host.length}`;
  const service = serviceOf(host, dnsDomain, reach);
  if (service === undefined) return `no service ${host} is visible to this client`;
  if (number === undefined && service.ports.length !== 1) {
    return `target has no port, and ${service.hostname} has ${service.ports.length}`;
  }
  const port =
    number === undefined
      ? service.ports[0]
      : service.ports.find((servicePort) => servicePort.number === Number(number));
  if (port === undefined || port.protocol === 'UDP') return `${service.hostname} has no port ${number}`;
  return { service, port };
}

const maxSearchLabels = 16;

function serviceOf(host: string, dnsDomain: string, reach: ProxyReach): Service | undefined {
  const labels = dnsDomain.split('.', maxSearchLabels);
  const candidateNames = labels.map((_, index) => `${host}.${labels.slice(index).join('.')}`);
  return [host, ...candidateNames]
    .map((candidate) => ({ candidate, service: reach.serviceByHostname(candidate) }))
    .find(({ candidate, service }) => service?.hostname === candidate)?.service;
}
