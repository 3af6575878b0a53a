/** Istio objects that a tenant may write, with values of other namespaces' objects. */
import type { KindName } from '../../src/model/kinds/index.ts';
import type { Draw } from '../random-config/draw.ts';
import * as of from './foreign-values.ts';

/** Generates the body of an object: its `spec`, or all fields besides `metadata`; may include `metadata`. */
export type BodyGenerator = (draw: Draw) => Readonly<Record<string, unknown>>;

const httpRoute = (draw: Draw): object => ({
  ...draw.maybe('match', 0.4, () => [
    {
      ...draw.maybe('uri', 0.5, () => ({ prefix: draw.pick(['/', '/v1', '/deep', '/lent/x']) })),
      ...draw.maybe('sourceNamespace', 0.2, () => of.namespace(draw)),
      ...draw.maybe('sourceLabels', 0.2, () => of.labels(draw)),
      ...draw.maybe('gateways', 0.2, () => [of.gateway(draw)]),
      ...draw.maybe('port', 0.2, () => of.port(draw)),
    },
  ]),
  ...draw.one<object>(
    () => ({ route: [destination(draw)] }),
    () => ({ redirect: { authority: 'mine.example.org' } }),
    () => ({ directResponse: { status: 418 } }),
  ),
  ...draw.maybe('headers', 0.2, () => ({ request: { add: { 'x-mallory': 'yes' } } })),
  ...draw.maybe('timeout', 0.2, () => '1s'),
});

const destination = (draw: Draw): object => ({
  destination: {
    host: of.host(draw),
    ...draw.maybe('subset', 0.2, () => 'v1'),
    port: { number: of.port(draw) },
  },
});

const trafficPolicy = (draw: Draw): object => ({
  ...draw.maybe('connectionPool', 1, () => ({ tcp: { maxConnections: 1 }, http: { http1MaxPendingRequests: 1 } })),
  ...draw.maybe('tls', 0.4, () =>
    draw.pick([{ mode: 'DISABLE' }, { mode: 'ISTIO_MUTUAL' }, { mode: 'SIMPLE', sni: 'bank.example.com' }]),
  ),
  ...draw.maybe('outlierDetection', 0.3, () => ({ consecutive5xxErrors: 1 })),
  ...draw.maybe('portLevelSettings', 0.3, () => [
    { port: { number: of.port(draw) }, connectionPool: { tcp: { maxConnections: 1 } } },
  ]),
  ...draw.maybe('loadBalancer', 0.2, () => ({
    localityLbSetting: { enabled: true, failoverPriority: ['app'] },
    simple: 'RANDOM',
  })),
});

/** Scope of a policy: labels, or the names of objects. */
const scope = (draw: Draw): object =>
  draw.one<object>(
    () => ({}),
    () => ({ selector: { matchLabels: of.labels(draw) } }),
    () => ({
      targetRefs: [
        draw.pick([
          { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'edge' },
          { group: 'networking.istio.io', kind: 'Gateway', name: 'front' },
          { kind: 'Service', name: 'ledger' },
        ]),
      ],
    }),
  );

const gatewayServer = (draw: Draw, index: number): object => {
  const number = of.port(draw);
  const hosts = draw.list(1, 2, () =>
    draw.pick(['*', 'bank.example.com', 'bank/bank.example.com', '*/*', './*', 'shop.example.com', 'mine.example.org']),
  );
  return draw.one<object>(
    () => ({ port: { number, name: `s${index}`, protocol: 'HTTP' }, hosts }),
    () => ({
      port: { number, name: `s${index}`, protocol: 'HTTPS' },
      hosts,
      tls: { mode: 'SIMPLE', credentialName: of.credential(draw) },
    }),
    () => ({
      port: { number, name: `s${index}`, protocol: 'TLS' },
      hosts,
      tls: { mode: draw.pick(['PASSTHROUGH', 'AUTO_PASSTHROUGH']) },
    }),
    () => ({
      port: { number, name: `s${index}`, protocol: 'TCP' },
      hosts: ['*'],
      ...draw.maybe('bind', 0.3, () => of.address(draw)),
    }),
  );
};

const lua = {
  name: 'lua',
  typed_config: {
    '@type': 'type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua',
    default_source_code: { inline_string: 'function envoy_on_request(h) end' },
  },
};

const envoyPatch = (draw: Draw): object => {
  const context = draw.pick(['ANY', 'SIDECAR_INBOUND', 'SIDECAR_OUTBOUND', 'GATEWAY']);
  const patch = (applyTo: string, operation: string, value?: object): object => ({
    applyTo,
    match: { context },
    patch: { operation, ...(value && { value }) },
  });
  return draw.pick([
    patch('HTTP_FILTER', 'INSERT_FIRST', lua),
    patch('CLUSTER', 'MERGE', { connect_timeout: '7s' }),
    patch('CLUSTER', 'REMOVE'),
    patch('LISTENER', 'MERGE', { per_connection_buffer_limit_bytes: 7 }),
    patch('ROUTE_CONFIGURATION', 'MERGE', { request_headers_to_remove: ['x-mallory'] }),
    patch('VIRTUAL_HOST', 'MERGE', { include_request_attempt_count: true }),
    patch('EXTENSION_CONFIG', 'ADD', { ...lua, name: 'bank.guard' }),
    patch('BOOTSTRAP', 'MERGE', { stats_flush_interval: '7s' }),
  ]);
};

const endpoint = (draw: Draw): object => ({
  address: of.address(draw),
  labels: of.labels(draw),
  ...draw.maybe('ports', 0.3, () => ({ http: of.port(draw) })),
  ...draw.maybe('network', 0.2, () => 'west'),
  ...draw.maybe('locality', 0.2, () => 'r2/z2'),
  ...draw.maybe('serviceAccount', 0.4, () => draw.pick(['ledger', 'default'])),
  ...draw.maybe('weight', 0.2, () => 99),
});

export const istioObjects = {
  AuthorizationPolicy: (draw) => ({
    ...scope(draw),
    action: draw.pick(['ALLOW', 'DENY', 'AUDIT']),
    rules: draw.pick([[{}], [{ from: [{ source: { namespaces: ['bank'] } }] }]]),
  }),
  DestinationRule: (draw) => ({
    host: of.hostOrWildcard(draw),
    ...of.exportTo(draw),
    trafficPolicy: trafficPolicy(draw),
    ...draw.maybe('subsets', 0.4, () => [
      { name: draw.pick(['v1', 'v2']), labels: of.labels(draw), trafficPolicy: trafficPolicy(draw) },
    ]),
    ...draw.maybe('workloadSelector', 0.2, () => ({ matchLabels: of.labels(draw) })),
  }),
  EnvoyFilter: (draw) => ({
    ...draw.one<object>(
      () => ({}),
      () => ({ workloadSelector: { labels: of.labels(draw) } }),
      () => ({ targetRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'edge' }] }),
    ),
    priority: draw.pick([-99, 0, 99]),
    configPatches: draw.list(1, 3, () => envoyPatch(draw)),
  }),
  Gateway: (draw) => ({
    ...draw.maybe('metadata', 0.2, () => ({
      annotations: {
        'internal.istio.io/gateway-service': draw.pick([
          'ingressgateway.istio-system.svc.cluster.local',
          'edge-istio.istio-system.svc.cluster.local',
          'mine.mallory.svc.cluster.local',
        ]),
      },
    })),
    selector: of.labels(draw),
    servers: draw.list(1, 3, (index) => gatewayServer(draw, index)),
  }),
  PeerAuthentication: (draw) => ({
    ...draw.maybe('selector', 0.5, () => ({ matchLabels: of.labels(draw) })),
    mtls: { mode: draw.pick(['STRICT', 'PERMISSIVE', 'DISABLE']) },
  }),
  ProxyConfig: (draw) => ({
    ...draw.maybe('selector', 0.5, () => ({ matchLabels: of.labels(draw) })),
    concurrency: 1,
    environmentVariables: { ISTIO_META_NETWORK: 'mallory' },
  }),
  RequestAuthentication: (draw) => ({
    ...scope(draw),
    jwtRules: [{ issuer: draw.pick(['issuer.test', 'mallory.test']), jwks: '{"keys":[]}' }],
  }),
  ServiceEntry: (draw) => ({
    hosts: draw.list(1, 2, () => of.hostOrWildcard(draw)),
    ...draw.maybe('addresses', 0.5, () => draw.list(1, 2, () => of.virtualAddress(draw))),
    ports: draw.list(1, 2, (index) => ({
      number: of.port(draw),
      name: `p${index}`,
      protocol: of.protocol(draw),
      ...draw.maybe('targetPort', 0.3, () => of.port(draw)),
    })),
    location: draw.pick(['MESH_INTERNAL', 'MESH_EXTERNAL']),
    ...draw.one<object>(
      () => ({ resolution: 'STATIC', endpoints: draw.list(1, 3, () => endpoint(draw)) }),
      () => ({ resolution: 'STATIC', workloadSelector: { labels: of.labels(draw) } }),
      () => ({ resolution: draw.pick(['NONE', 'DNS', 'DNS_ROUND_ROBIN', 'DYNAMIC_DNS']) }),
      () => ({ resolution: 'DNS', endpoints: [{ address: of.host(draw) }] }),
    ),
    ...of.exportTo(draw),
    ...draw.maybe('subjectAltNames', 0.2, () => ['spiffe://cluster.local/ns/bank/sa/ledger']),
  }),
  Sidecar: (draw) => ({
    ...draw.maybe('workloadSelector', 0.5, () => ({ labels: of.labels(draw) })),
    egress: [{ hosts: draw.some(['bank/*', './*', '*/*', '~/*', 'istio-system/*'], 1, 2) }],
    ...draw.maybe('ingress', 0.4, () => [
      { port: { number: of.port(draw), name: 'in', protocol: of.protocol(draw) }, defaultEndpoint: '127.0.0.1:1234' },
    ]),
  }),
  Telemetry: (draw) => ({
    ...scope(draw),
    accessLogging: [{ disabled: draw.chance(0.5) }],
    ...draw.maybe('tracing', 0.3, () => [{ randomSamplingPercentage: 100 }]),
  }),
  VirtualService: (draw) => {
    const gateways = draw.chance(0.6) ? [...new Set(draw.list(1, 2, () => of.gateway(draw)))] : [];
    const isForMesh = gateways.length === 0 || gateways.includes('mesh');
    const host = (): string => (isForMesh || draw.chance(0.7) ? of.hostOrWildcard(draw) : '*');
    if (draw.chance(0.15)) return { ...of.exportTo(draw), http: [httpRoute(draw)] };
    return {
      hosts: [host()],
      ...(gateways.length > 0 && { gateways }),
      ...of.exportTo(draw),
      ...draw.one<object>(
        () => ({ http: draw.list(1, 2, () => httpRoute(draw)) }),
        () => ({
          http: [
            {
              match: [{ uri: { prefix: '/x' } }],
              delegate: { name: draw.pick(['deep', 'lent']), namespace: of.namespace(draw) },
            },
          ],
        }),
        () => ({
          tcp: [
            {
              match: [
                { port: of.port(draw), ...draw.maybe('destinationSubnets', 0.3, () => [of.virtualAddress(draw)]) },
              ],
              route: [destination(draw)],
            },
          ],
        }),
        () => ({
          tls: [{ match: [{ port: of.port(draw), sniHosts: [of.hostOrWildcard(draw)] }], route: [destination(draw)] }],
        }),
      ),
    };
  },
  TrafficExtension: (draw) => ({
    ...scope(draw),
    phase: draw.pick(['AUTHN', 'STATS']),
    lua: { inlineCode: 'function envoy_on_request(handle) end' },
  }),
  WasmPlugin: (draw) => ({
    ...scope(draw),
    url: 'http://mine.mallory.svc.cluster.local:80/mine.wasm',
    sha256: 'b'.repeat(64),
    phase: draw.pick(['AUTHN', 'STATS']),
  }),
  WorkloadEntry: (draw) => endpoint(draw) as Record<string, unknown>,
  WorkloadGroup: (draw) => ({
    metadata: { labels: of.labels(draw) },
    template: { serviceAccount: 'ledger', ports: { http: of.port(draw) } },
  }),
} as const satisfies Partial<Record<KindName, BodyGenerator>>;
