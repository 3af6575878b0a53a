/** For every kind, objects of one megabyte with the longest possible list, or product of lists. A tenant may create them in its namespace. */
import type { KindName } from '../../src/model/kinds/index.ts';

/** The API server accepts objects of about this size (etcd's limit is 1.5 MiB). */
export const objectBytes = 1_000_000;

export interface LargeObject {
  /** The object has no long list and is accepted at any size. */
  readonly isText?: true;
  /** Description of the large part. */
  readonly title: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Fills a list up to one megabyte. `max` limits the count if the API has a limit. */
function filled<Item>(item: (index: number) => Item, max = Number.POSITIVE_INFINITY, bytes = objectBytes): Item[] {
  const items: Item[] = [];
  for (let size = 0; size < bytes && items.length < max; ) {
    const next = item(items.length);
    items.push(next);
    size += JSON.stringify(next).length + 1;
  }
  return items;
}

const times = <Item>(count: number, item: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => item(i));

const map = <Value>(value: Value, key: (index: number) => string, max?: number): Record<string, Value> =>
  Object.fromEntries(filled((index) => [key(index), value] as const, max));

const address = (index: number): string => `10.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
const vip = (index: number): string => `240.240.${(index >> 8) & 255}.${index & 255}`;
const host = (index: number): string => `h${index}.mallory.test`;
const ports = (count: number, protocol: string, name = 'number') =>
  times(count, (i) => ({ [name]: 1000 + i, name: `p${i}`, protocol }));

const spec = (title: string, fields: object, overrides: Partial<LargeObject> = {}): LargeObject => ({
  title,
  body: { spec: fields },
  ...overrides,
});
const body = (title: string, fields: Readonly<Record<string, unknown>>): LargeObject => ({ title, body: fields });

const app = { matchLabels: { app: 'mallory' } };
const route = [{ destination: { host: 'web.bank.test' } }];

/** The type requires an entry for each new kind. */
export const largestObjects: { readonly [K in KindName]: () => readonly LargeObject[] } = {
  AuthorizationPolicy: () => [
    spec('rules', { rules: filled((i) => ({ from: [{ source: { principals: [`p${i}`] } }] })) }),
    spec('ipBlocks', { rules: [{ from: [{ source: { ipBlocks: filled(address) } }] }] }),
    spec('hosts x paths', {
      rules: [
        {
          to: [{ operation: { hosts: filled(host, undefined, 5e5), paths: filled((i) => `/p${i}`, undefined, 5e5) } }],
        },
      ],
    }),
  ],
  DestinationRule: () => [
    spec('subsets', {
      host: 'web0.mallory.test',
      subsets: filled((i) => ({ name: `s${i}`, labels: { v: `${i}` } })),
    }),
    spec('subsets of *.svc.cluster.local', {
      host: '*.svc.cluster.local',
      subsets: filled((i) => ({ name: `s${i}` })),
    }),
    spec('subsets of *', { host: '*', subsets: filled((i) => ({ name: `s${i}` })) }),
    spec('portLevelSettings', {
      host: 'web0.mallory.test',
      trafficPolicy: {
        portLevelSettings: filled((i) => ({ port: { number: 1 + (i % 65535) }, tls: { mode: 'DISABLE' } })),
      },
    }),
    spec('subsets x portLevelSettings', {
      host: '*.mallory.test',
      subsets: times(60, (i) => ({
        name: `s${i}`,
        trafficPolicy: {
          portLevelSettings: times(300, (port) => ({ port: { number: 1 + port }, tls: { mode: 'DISABLE' } })),
        },
      })),
    }),
    spec('exportTo', { host: 'web0.mallory.test', exportTo: filled((i) => `n${i}`) }),
  ],
  EnvoyFilter: () => [
    spec('configPatches', {
      configPatches: filled(() => ({
        applyTo: 'CLUSTER',
        match: { cluster: { service: 'web.bank.test' } },
        patch: { operation: 'MERGE', value: { connect_timeout: '1s' } },
      })),
    }),
  ],
  Gateway: () => [
    spec('servers', {
      selector: { app: 'mallory' },
      servers: filled((i) => ({
        port: { number: 1 + (i % 65535), name: `p${i}`, protocol: 'HTTP' },
        hosts: [`*.${host(i)}`],
      })),
    }),
    spec('hosts of one server', {
      selector: { istio: 'ingressgateway' },
      servers: [{ port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: filled(host) }],
    }),
    spec('servers x hosts', {
      selector: { istio: 'ingressgateway' },
      servers: times(64, (i) => ({
        port: { number: 1000 + i, name: `h${i}`, protocol: 'HTTP' },
        hosts: times(600, (h) => host(h)),
      })),
    }),
  ],
  PeerAuthentication: () => [
    spec('portLevelMtls', {
      selector: app,
      mtls: { mode: 'STRICT' },
      portLevelMtls: map({ mode: 'DISABLE' }, (i) => `${i + 1}`, 65_535),
    }),
  ],
  ProxyConfig: () => [spec('environmentVariables', { environmentVariables: map('x', (i) => `V${i}`) })],
  RequestAuthentication: () => [
    spec('jwtRules', { selector: app, jwtRules: filled((i) => ({ issuer: `i${i}`, jwks: '{"keys":[]}' })) }),
    spec('audiences', {
      selector: app,
      jwtRules: [{ issuer: 'i', jwks: '{"keys":[]}', audiences: filled((i) => `a${i}`) }],
    }),
  ],
  ServiceEntry: () => [
    spec('1,000 hosts x 50 HTTP ports', {
      hosts: times(1000, host),
      ports: ports(50, 'HTTP'),
      resolution: 'DNS',
    }),
    spec('hosts', { hosts: filled(host), ports: ports(1, 'HTTP'), resolution: 'DNS' }),
    spec('hosts x ports', {
      hosts: filled(host, undefined, 9e5),
      ports: ports(500, 'HTTP'),
      resolution: 'STATIC',
      endpoints: [{ address: '10.0.0.1' }],
    }),
    spec('TCP ports', {
      hosts: ['tcp.mallory.test'],
      ports: filled((i) => ({ number: 1 + (i % 65535), name: `p${i}`, protocol: 'TCP' }), 65_000),
      addresses: ['240.240.0.1'],
    }),
    spec('900 TCP ports x 40 addresses', {
      hosts: ['vips.mallory.test'],
      ports: ports(900, 'TCP'),
      addresses: times(40, vip),
      resolution: 'STATIC',
      endpoints: [{ address: '10.0.0.1' }],
    }),
    spec('addresses', { hosts: ['a.mallory.test'], ports: ports(1, 'TCP'), addresses: filled(address) }),
    spec('endpoints', {
      hosts: ['e.mallory.test'],
      ports: ports(1, 'HTTP'),
      resolution: 'STATIC',
      endpoints: filled((i) => ({ address: address(i) })),
    }),
    spec('ports x endpoints', {
      hosts: ['pe.mallory.test'],
      ports: ports(500, 'HTTP'),
      resolution: 'STATIC',
      endpoints: times(10_000, (i) => ({ address: address(i) })),
    }),
    spec('hosts x endpoints', {
      hosts: times(2_000, host),
      ports: ports(1, 'HTTP'),
      resolution: 'STATIC',
      endpoints: times(10_000, (i) => ({ address: address(i) })),
    }),
    spec('subjectAltNames x hosts', {
      hosts: times(1_000, host),
      ports: ports(10, 'HTTP'),
      resolution: 'DNS',
      subjectAltNames: filled((i) => `spiffe://td/ns/mallory/sa/${i}`, undefined, 9e5),
    }),
  ],
  Sidecar: () => [
    spec('egress listeners', {
      egress: filled((i) => ({ port: { number: 1 + (i % 65_535), protocol: 'HTTP' }, hosts: ['*/*'] })),
    }),
    spec('ingress listeners', {
      workloadSelector: { labels: { app: 'mallory' } },
      ingress: filled((i) => ({
        port: { number: 1 + (i % 65_535), protocol: 'HTTP' },
        defaultEndpoint: '127.0.0.1:80',
      })),
    }),
    spec('egress hosts', { egress: [{ hosts: filled((i) => `*/${host(i)}`) }] }),
  ],
  Telemetry: () => [
    spec('tagOverrides', {
      metrics: [
        {
          providers: [{ name: 'prometheus' }],
          overrides: [{ match: { metric: 'REQUEST_COUNT' }, tagOverrides: map({ value: '"x"' }, (i) => `t${i}`) }],
        },
      ],
    }),
    spec('accessLogging', { accessLogging: filled(() => ({ providers: [{ name: 'envoy' }] })) }),
  ],
  VirtualService: () => [
    spec('http routes for all hosts', {
      hosts: ['*.bank.test'],
      http: filled((i) => ({ match: [{ uri: { exact: `/${i}` } }], route })),
    }),
    spec('http matches', {
      hosts: ['web.bank.test'],
      http: [{ match: filled((i) => ({ uri: { exact: `/${i}` } })), route }],
    }),
    spec('regular expressions', {
      hosts: ['web.bank.test'],
      http: filled((i) => ({ match: [{ uri: { regex: `/a${i}.*` } }], route })),
    }),
    spec('hosts', { hosts: filled(host), http: [{ route }] }),
    spec('hosts x routes', {
      hosts: times(10_000, host),
      http: times(5_000, (i) => ({ match: [{ uri: { exact: `/${i}` } }], route })),
    }),
    spec('destinations', {
      hosts: ['web.bank.test'],
      http: [{ route: filled((i) => ({ destination: { host: host(i) }, weight: 1 })) }],
    }),
    spec('tcp routes', {
      hosts: ['web.bank.test'],
      tcp: filled((i) => ({ match: [{ port: 1 + (i % 65_535), destinationSubnets: [address(i)] }], route })),
    }),
    spec('sniHosts', { hosts: ['*.mallory.test'], tls: [{ match: [{ port: 443, sniHosts: filled(host) }], route }] }),
    spec('gateways', { hosts: ['web.bank.test'], gateways: filled((i) => `g${i}`), http: [{ route }] }),
    spec('matches x headers', {
      hosts: ['web.bank.test'],
      http: [
        {
          match: times(4_000, (i) => ({ uri: { exact: `/${i}` } })),
          route,
          headers: { request: { set: Object.fromEntries(times(4_000, (i) => [`h${i}`, 'x'.repeat(150)])) } },
        },
      ],
    }),
    spec('headers', {
      hosts: ['web.bank.test'],
      http: [{ route, headers: { request: { set: map('x', (i) => `h${i}`) } } }],
    }),
  ],
  TrafficExtension: () => [
    spec('match', {
      wasm: { url: 'oci://127.0.0.1/x' },
      match: filled((i) => ({ ports: [{ number: 1 + (i % 65_535) }] })),
    }),
  ],
  WasmPlugin: () => [
    spec('match', { url: 'oci://127.0.0.1/x', match: filled((i) => ({ ports: [{ number: 1 + (i % 65_535) }] })) }),
    spec('vmConfig.env', {
      url: 'oci://127.0.0.1/x',
      vmConfig: { env: filled((i) => ({ name: `E${i}`, value: 'x' })) },
    }),
  ],
  WorkloadEntry: () => [
    spec('ports', { address: '10.0.0.1', ports: map(80, (i) => `p${i}`) }),
    spec('labels', { address: '10.0.0.1', labels: map('x', (i) => `l${i}`) }),
  ],
  WorkloadGroup: () => [
    spec('ports', { template: { ports: map(80, (i) => `p${i}`) } }),
    spec('labels', { metadata: { labels: map('x', (i) => `l${i}`) }, template: {} }),
  ],
  ConfigMap: () => [
    body('data', { data: map('x', (i) => `k${i}`) }),
    { ...body('ca.crt', { data: { 'ca.crt': 'x'.repeat(objectBytes) } }), isText: true },
  ],
  Endpoints: () => [
    body('addresses', {
      subsets: [{ addresses: filled((i) => ({ ip: address(i) })), ports: [{ name: 'p0', port: 80 }] }],
    }),
    body('subsets', {
      subsets: filled((i) => ({ addresses: [{ ip: address(i) }], ports: [{ name: 'p0', port: 80 }] })),
    }),
  ],
  EndpointSlice: () => [
    {
      title: '1,000 endpoints x 100 ports (limits of the API server)',
      labels: { 'kubernetes.io/service-name': 'victim-of-slice' },
      body: {
        addressType: 'IPv4',
        endpoints: times(1_000, (i) => ({ addresses: [address(i)], conditions: { ready: true } })),
        ports: times(100, (i) => ({ name: `p${i}`, port: 1 + i, protocol: 'TCP' })),
      },
    },
    {
      title: 'endpoints beyond the limits of the API server',
      labels: { 'kubernetes.io/service-name': 'victim-of-slice' },
      body: {
        addressType: 'IPv4',
        endpoints: filled((i) => ({ addresses: [address(i)], conditions: { ready: true } })),
        ports: times(100, (i) => ({ name: `p${i}`, port: 1 + i, protocol: 'TCP' })),
      },
    },
  ],
  Ingress: () => [
    spec('paths', {
      ingressClassName: 'istio',
      rules: [
        {
          host: host(0),
          http: {
            paths: filled((i) => ({
              path: `/${i}`,
              pathType: 'Prefix',
              backend: { service: { name: 'web', port: { number: 80 } } },
            })),
          },
        },
      ],
    }),
    spec('rules', {
      ingressClassName: 'istio',
      rules: filled((i) => ({
        host: host(i),
        http: {
          paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
        },
      })),
    }),
    spec('tls hosts', { ingressClassName: 'istio', tls: [{ hosts: filled(host), secretName: 's' }], rules: [] }),
    spec('tls', {
      ingressClassName: 'istio',
      tls: filled((i) => ({ hosts: [host(i)], secretName: `s${i}` })),
      rules: [],
    }),
  ],
  IngressClass: () => [spec('controller', { controller: 'x'.repeat(objectBytes) }, { isText: true })],
  Namespace: () => [{ ...body('finalizers', { spec: { finalizers: filled((i) => `f${i}`) } }), isText: true }],
  Node: () => [
    body('addresses', { status: { addresses: filled((i) => ({ type: 'InternalIP', address: address(i) })) } }),
  ],
  Pod: () => [
    body('containers', {
      spec: {
        containers: filled((i) => ({ name: `c${i}`, ports: [{ name: `p${i}`, containerPort: 1 + (i % 65_535) }] })),
      },
      status: { phase: 'Running', podIP: '10.9.9.9', podIPs: [{ ip: '10.9.9.9' }] },
    }),
    body('podIPs', {
      spec: { containers: [] },
      status: { phase: 'Running', podIP: '10.9.9.9', podIPs: filled((i) => ({ ip: address(i) })) },
    }),
  ],
  Secret: () => [body('data', { type: 'Opaque', data: map('eA==', (i) => `k${i}`) })],
  Service: () => [
    spec('ports', {
      clusterIP: '10.96.0.9',
      clusterIPs: ['10.96.0.9'],
      ports: filled((i) => ({ name: `p${i}`, port: 1 + (i % 65_535), protocol: 'TCP' }), 65_000),
    }),
    spec('HTTP ports', {
      clusterIP: '10.96.0.9',
      clusterIPs: ['10.96.0.9'],
      ports: filled((i) => ({ name: `http-${i}`, port: 1 + (i % 65_535), protocol: 'TCP' }), 65_000),
    }),
    spec('externalIPs', { clusterIP: '10.96.0.9', externalIPs: filled(address), ports: [{ name: 'http', port: 80 }] }),
  ],
  GatewayClass: () => [
    spec(
      'description',
      { controllerName: 'istio.io/gateway-controller', description: 'x'.repeat(objectBytes) },
      { isText: true },
    ),
  ],
  KubernetesGateway: () => [
    spec('listeners', {
      gatewayClassName: 'istio',
      listeners: filled((i) => ({ name: `l${i}`, port: 1 + (i % 65_535), protocol: 'HTTP', hostname: host(i) })),
    }),
    spec('addresses', {
      gatewayClassName: 'istio',
      listeners: [{ name: 'l', port: 80, protocol: 'HTTP' }],
      addresses: filled((i) => ({ value: address(i) })),
    }),
  ],
  HTTPRoute: () => [
    spec('rules', {
      parentRefs: [{ name: 'edge' }],
      rules: filled((i) => ({
        matches: [{ path: { type: 'PathPrefix', value: `/${i}` } }],
        backendRefs: [{ name: 'web', port: 80 }],
      })),
    }),
    spec('matches', {
      parentRefs: [{ name: 'edge' }],
      rules: [
        {
          matches: filled((i) => ({ path: { type: 'PathPrefix', value: `/${i}` } })),
          backendRefs: [{ name: 'web', port: 80 }],
        },
      ],
    }),
    spec('hostnames', {
      parentRefs: [{ name: 'edge' }],
      hostnames: filled(host),
      rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
    }),
    spec('parentRefs', {
      parentRefs: filled((i) => ({ name: `g${i}` })),
      rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
    }),
  ],
  GRPCRoute: () => [
    spec('rules', {
      parentRefs: [{ name: 'edge' }],
      rules: filled((i) => ({ matches: [{ method: { service: `s${i}` } }], backendRefs: [{ name: 'web', port: 80 }] })),
    }),
  ],
  BackendTLSPolicy: () => [
    spec('targetRefs', {
      targetRefs: filled((i) => ({ group: '', kind: 'Service', name: `s${i}` })),
      validation: { hostname: 'a.test', wellKnownCACertificates: 'System' },
    }),
  ],
  TCPRoute: () => [
    spec('rules', {
      parentRefs: [{ name: 'edge' }],
      rules: filled((i) => ({ backendRefs: [{ name: `b${i}`, port: 80 }] })),
    }),
  ],
  TLSRoute: () => [
    spec('hostnames', {
      parentRefs: [{ name: 'edge' }],
      hostnames: filled(host),
      rules: [{ backendRefs: [{ name: 'web', port: 80 }] }],
    }),
  ],
  ReferenceGrant: () => [
    spec('from', {
      from: filled((i) => ({ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: `n${i}` })),
      to: [{ group: '', kind: 'Service' }],
    }),
  ],
};

/** For kinds whose objects expand: the largest accepted objects. */
export const largestAccepted: { readonly [K in KindName]?: () => readonly LargeObject[] } = {
  DestinationRule: () => [
    spec('512 subsets', {
      host: 'web0.mallory.test',
      subsets: times(512, (i) => ({ name: `s${i}`, labels: { v: `${i}` } })),
    }),
    spec('32 subsets of *.mallory.test', { host: '*.mallory.test', subsets: times(32, (i) => ({ name: `s${i}` })) }),
  ],
  ServiceEntry: () => [
    spec('2,048 hosts x 1 port', { hosts: times(2_048, host), ports: ports(1, 'HTTP'), resolution: 'DNS' }),
    spec('40 hosts x 50 ports', { hosts: times(40, host), ports: ports(50, 'HTTP'), resolution: 'DNS' }),
    spec('8 hosts x 256 ports', { hosts: times(8, host), ports: ports(256, 'HTTP'), resolution: 'DNS' }),
    spec('1,000 hosts x 2 TLS ports', { hosts: times(1_000, host), ports: ports(2, 'TLS'), resolution: 'DNS' }),
    spec('25 TCP ports x 40 addresses', {
      hosts: ['vips.mallory.test'],
      ports: ports(25, 'TCP'),
      addresses: times(40, vip),
      resolution: 'STATIC',
      endpoints: [{ address: '10.0.0.1' }],
    }),
    spec('256 TCP ports x 4 addresses', {
      hosts: ['vips.mallory.test'],
      ports: ports(256, 'TCP'),
      addresses: times(4, vip),
      resolution: 'STATIC',
      endpoints: [{ address: '10.0.0.1' }],
    }),
    spec('4,096 endpoints x 8 ports', {
      hosts: ['e.mallory.test'],
      ports: ports(8, 'HTTP'),
      resolution: 'STATIC',
      endpoints: times(4_096, (i) => ({ address: address(i) })),
    }),
  ],
  VirtualService: () => [
    spec('4,096 routes', {
      hosts: ['web0.mallory.test'],
      http: times(4_096, (i) => ({ match: [{ uri: { exact: `/${i}` } }], route })),
    }),
    spec('1,000 hosts x 8 routes', {
      hosts: times(1_000, host),
      http: times(8, (i) => ({ match: [{ uri: { exact: `/${i}` } }], route })),
    }),
    spec('4,096 TCP routes', {
      hosts: ['web0.mallory.test'],
      tcp: times(4_096, (i) => ({ match: [{ port: 1 + i, destinationSubnets: [address(i)] }], route })),
    }),
    spec('4,096 sniHosts', {
      hosts: ['*.mallory.test'],
      tls: [{ match: [{ port: 443, sniHosts: times(4_096, host) }], route }],
    }),
  ],
  Service: () => [
    spec('1,024 TCP ports', { clusterIP: '10.96.0.9', ports: times(1_024, (i) => ({ name: `p${i}`, port: 1 + i })) }),
    spec('1,024 HTTP ports', {
      clusterIP: '10.96.0.9',
      ports: times(1_024, (i) => ({ name: `http-${i}`, port: 1 + i })),
    }),
  ],
};
