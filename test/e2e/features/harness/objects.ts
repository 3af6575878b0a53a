/** Objects that feature tests need but do not test. */
import { stringify } from 'yaml';

interface HostPort {
  readonly address: string;
  readonly port: number;
}

export interface ServiceEntryOptions {
  /** The service's port, which a sidecar binds at loopback. */
  readonly port: number;
  readonly protocol?: string;
  /** Default `shop`. */
  readonly namespace?: string;
  readonly backends?: readonly (HostPort & { readonly labels?: Readonly<Record<string, string>> })[];
  /** Whether endpoints have their backend's name as the label `version` (default true). */
  readonly versions?: boolean;
  /** Added to the spec. */
  readonly spec?: Readonly<Record<string, unknown>>;
}

/** A service of static endpoints, each with its backend's name as the label `version`. */
export function serviceEntry(host: string, options: ServiceEntryOptions): string {
  const { port, protocol = 'HTTP', namespace = 'shop', backends = [], spec } = options;
  const endpoints = backends.map((backend) => ({
    address: backend.address,
    ports: { main: backend.port },
    labels: { ...('name' in backend && { version: String(backend.name) }), ...backend.labels },
  }));
  return object('networking.istio.io/v1', 'ServiceEntry', namespace, nameOf(host), {
    hosts: [host],
    resolution: 'STATIC',
    location: 'MESH_INTERNAL',
    ports: [{ number: port, name: 'main', protocol }],
    endpoints,
    ...spec,
  });
}

export function virtualService(host: string, spec: object, { namespace = 'shop', name = nameOf(host) } = {}): string {
  return object('networking.istio.io/v1', 'VirtualService', namespace, name, { hosts: [host], ...spec });
}

export function destinationRule(host: string, spec: object, { namespace = 'shop', name = nameOf(host) } = {}): string {
  return object('networking.istio.io/v1', 'DestinationRule', namespace, name, { host, ...spec });
}

export interface GatewayServer {
  readonly port: number;
  readonly protocol: string;
  readonly hosts: readonly string[];
  readonly tls?: object;
}

export function gateway(
  name: string,
  selector: Readonly<Record<string, string>>,
  servers: readonly GatewayServer[],
  { namespace = 'shop' } = {},
): string {
  return object('networking.istio.io/v1', 'Gateway', namespace, name, {
    selector,
    servers: servers.map(({ port, protocol, hosts, tls }, index) => ({
      port: { number: port, name: `port-${index}`, protocol },
      hosts,
      ...(tls && { tls }),
    })),
  });
}

/** Formats any object as YAML. */
export function object(apiVersion: string, kind: string, namespace: string, name: string, spec: object): string {
  return stringify({ apiVersion, kind, metadata: { name, namespace }, spec });
}

function nameOf(host: string): string {
  return host.replaceAll('*', 'all').replaceAll('.', '-');
}
