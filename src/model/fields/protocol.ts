export type ApplicationProtocol =
  | 'GRPC'
  | 'GRPC-Web'
  | 'HTTP'
  | 'HTTP2'
  | 'HTTPS'
  | 'HTTP_PROXY'
  | 'Mongo'
  | 'MySQL'
  | 'Redis'
  | 'TCP'
  | 'TLS'
  | 'UDP'
  /** Not declared, so the listener detects it. */
  | 'unsupported';

/** A Map, because a plain object would have an entry for `constructor`. */
const protocolByPrefix: ReadonlyMap<string, ApplicationProtocol> = new Map(
  Object.entries({
    grpc: 'GRPC',
    http: 'HTTP',
    http2: 'HTTP2',
    https: 'HTTPS',
    http_proxy: 'HTTP_PROXY',
    mongo: 'Mongo',
    mysql: 'MySQL',
    redis: 'Redis',
    tcp: 'TCP',
    tls: 'TLS',
    udp: 'UDP',
  }),
);

const protocolByAppProtocol: ReadonlyMap<string, ApplicationProtocol> = new Map(
  Object.entries({
    'kubernetes.io/h2c': 'HTTP2',
    'kubernetes.io/ws': 'HTTP',
    'kubernetes.io/wss': 'HTTPS',
  }),
);

/** Ports of server-first protocols, on which protocol detection would stall. */
export const serverFirstPorts: ReadonlySet<number> = new Set([25, 53, 3306, 27017]);

/** `name` is the port's name (`http-web`), or the protocol of a ServiceEntry or Gateway port (`HTTP`). */
export function protocolOf(port: {
  name: string;
  number: number;
  appProtocol?: string;
  transport?: string;
}): ApplicationProtocol {
  if (port.transport === 'UDP') return 'UDP';
  if (port.appProtocol !== undefined) {
    const explicitProtocol = protocolByAppProtocol.get(port.appProtocol);
    if (explicitProtocol !== undefined) return explicitProtocol;
  }
  const text = (port.appProtocol ?? port.name).toLowerCase();
  if (text.startsWith('grpc-web')) return 'GRPC-Web';
  const protocol = protocolByPrefix.get(text.split('-', 1)[0]!);
  return protocol ?? (serverFirstPorts.has(port.number) ? 'TCP' : 'unsupported');
}

const httpProtocols: ReadonlySet<ApplicationProtocol> = new Set(['HTTP', 'HTTP2', 'HTTP_PROXY', 'GRPC', 'GRPC-Web']);
const http2Protocols: ReadonlySet<ApplicationProtocol> = new Set(['HTTP2', 'GRPC', 'GRPC-Web']);
const tlsProtocols: ReadonlySet<ApplicationProtocol> = new Set(['HTTPS', 'TLS']);

export const isHttp = (protocol: ApplicationProtocol): boolean => httpProtocols.has(protocol);
export const isHttp2 = (protocol: ApplicationProtocol): boolean => http2Protocols.has(protocol);
export const isTls = (protocol: ApplicationProtocol): boolean => tlsProtocols.has(protocol);
export const isTcp = (protocol: ApplicationProtocol): boolean =>
  !httpProtocols.has(protocol) && protocol !== 'UDP' && protocol !== 'unsupported';
