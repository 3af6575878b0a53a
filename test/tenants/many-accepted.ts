/**
 * For every kind, valid objects of one namespace, as many or as large as its limits allow. A tenant may create them all together. Each object has a
 * `turn`, so that the tenant can change them repeatedly.
 */
import type { KindName } from '../../src/model/kinds/index.ts';

export interface AcceptedObject {
  readonly body: Readonly<Record<string, unknown>>;
  readonly labels?: Readonly<Record<string, string>>;
}

const times = <Item>(count: number, item: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => item(index));

const address = (index: number): string => `10.${20 + ((index >> 16) & 63)}.${(index >> 8) & 255}.${index & 255}`;
const host = (index: number, turn = 0): string => `h${index}-${turn}.mallory.test`;
const selector = (index: number): object => ({ matchLabels: { app: `mallory-${index}` } });
const spec = (fields: object, labels?: AcceptedObject['labels']): AcceptedObject => ({
  body: { spec: fields },
  ...(labels && { labels }),
});
const route = [{ destination: { host: 'web0.mallory.test' } }];
const backendRefs = [{ name: 'svc0', port: 80 }];
const service = (index: number): object => ({ group: '', kind: 'Service', name: `svc${index % 20}` });

/** The type requires an entry for each new kind. */
export const manyAccepted: { readonly [K in KindName]: (turn: number) => readonly AcceptedObject[] } = {
  AuthorizationPolicy: (turn) =>
    times(1_000, (i) =>
      spec({
        selector: selector(i),
        rules: times(10, (rule) => ({ from: [{ source: { principals: [`p${rule}-${turn}`] } }] })),
      }),
    ),
  DestinationRule: (turn) =>
    times(38, (i) =>
      spec({
        host: i < 20 ? `svc${i}.mallory.svc.cluster.local` : `web${i - 20}.mallory.test`,
        subsets: times(512, (s) => ({ name: `s${s}`, labels: { v: `${s}-${turn}` } })),
      }),
    ),
  EnvoyFilter: (turn) =>
    times(40, (i) =>
      spec({
        workloadSelector: { labels: { app: `mallory-${i}` } },
        configPatches: times(512, () => ({
          applyTo: 'CLUSTER',
          match: { cluster: { service: 'web.bank.test' } },
          patch: { operation: 'MERGE', value: { connect_timeout: `${turn + 1}s` } },
        })),
      }),
    ),
  Gateway: (turn) =>
    times(20, (i) =>
      spec({
        selector: { istio: 'ingressgateway' },
        servers: times(100, (s) => ({
          port: { number: 1_000 + s, name: `p${s}`, protocol: 'HTTP' },
          hosts: times(20, (h) => host(i * 20 + h, turn)),
        })),
      }),
    ),
  PeerAuthentication: (turn) =>
    times(1_000, (i) =>
      spec({
        selector: selector(i),
        mtls: { mode: turn % 2 === 0 ? 'STRICT' : 'PERMISSIVE' },
        portLevelMtls: Object.fromEntries(times(32, (port) => [`${port + 1}`, { mode: 'DISABLE' }])),
      }),
    ),
  ProxyConfig: (turn) => times(2_000, (i) => spec({ selector: selector(i), environmentVariables: { A: `${turn}` } })),
  RequestAuthentication: (turn) =>
    times(1_000, (i) => spec({ selector: selector(i), jwtRules: [{ issuer: `i${turn}`, jwks: '{"keys":[]}' }] })),
  ServiceEntry: (turn) =>
    times(9, (i) =>
      spec({
        hosts: times(2_048, (h) => host(i * 2_048 + h, turn)),
        ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
        resolution: 'STATIC',
        endpoints: times(16, (e) => ({ address: address(e) })),
      }),
    ),
  Sidecar: (turn) =>
    times(500, (i) =>
      spec({
        workloadSelector: { labels: { app: `mallory-${i}` } },
        egress: [{ hosts: times(50, (h) => `*/${host(h, turn)}`) }],
      }),
    ),
  Telemetry: (turn) =>
    times(2_000, (i) => spec({ selector: selector(i), accessLogging: [{ disabled: turn % 2 === 0 }] })),
  VirtualService: (turn) =>
    times(4, (i) =>
      spec({
        hosts: [`web${i}.mallory.test`],
        http: times(4_096, (r) => ({ match: [{ uri: { exact: `/${turn}/${r}` } }], route })),
      }),
    ),
  TrafficExtension: (turn) => times(2_000, (i) => spec({ selector: selector(i), wasm: { url: `file:///x-${turn}` } })),
  WasmPlugin: (turn) => times(2_000, (i) => spec({ selector: selector(i), url: `file:///x-${turn}` })),
  WorkloadEntry: (turn) =>
    times(4_000, (i) => spec({ address: address(i), labels: { app: 'selected', turn: `${turn}` } })),
  WorkloadGroup: (turn) =>
    times(2_000, () => spec({ metadata: { labels: { app: 'mallory' } }, template: { network: `n${turn}` } })),
  ConfigMap: (turn) => times(2_000, () => ({ body: { data: { 'ca.crt': `x${turn}` } } })),
  Endpoints: (turn) =>
    times(100, (i) => ({
      body: { subsets: [{ addresses: times(1_000, (a) => ({ ip: address(i + a + turn) })), ports: [{ port: 80 }] }] },
    })),
  EndpointSlice: (turn) =>
    times(100, (i) => ({
      labels: { 'kubernetes.io/service-name': `svc${i % 20}` },
      body: {
        addressType: 'IPv4',
        endpoints: times(1_000, (e) => ({ addresses: [address(i * 1_000 + e + turn)], conditions: { ready: true } })),
        ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
      },
    })),
  Ingress: (turn) =>
    times(20, (i) =>
      spec({
        ingressClassName: 'istio',
        rules: [
          {
            host: host(i),
            http: {
              paths: times(1_000, (p) => ({
                path: `/${turn}/${p}`,
                pathType: 'Prefix',
                backend: { service: { name: 'svc0', port: { number: 80 } } },
              })),
            },
          },
        ],
      }),
    ),
  IngressClass: () => [spec({ controller: 'istio.io/ingress-controller' })],
  Namespace: () => [{ body: {} }],
  Node: (turn) => [{ body: {}, labels: { turn: `${turn}` } }],
  Pod: (turn) =>
    times(6_000, (i) => ({
      labels: { app: `mallory-${i % 100}`, turn: `${turn}` },
      body: {
        spec: {
          containers: [{ name: 'c', ports: [{ name: 'http', containerPort: 80 }] }],
          serviceAccountName: 'default',
        },
        status: { phase: 'Running', podIP: address(i), podIPs: [{ ip: address(i) }] },
      },
    })),
  Secret: (turn) => times(2_000, () => ({ body: { type: 'Opaque', data: { k: turn % 2 === 0 ? 'eA==' : 'eQ==' } } })),
  Service: (turn) =>
    times(980, (i) =>
      spec({
        clusterIP: `10.97.${i >> 8}.${i & 255}`,
        ports: times(20, (p) => ({ name: `http-${p}`, port: 1_000 + p + turn })),
      }),
    ),
  GatewayClass: () => [spec({ controllerName: 'istio.io/gateway-controller' })],
  KubernetesGateway: (turn) =>
    times(100, (i) =>
      spec({
        gatewayClassName: 'istio',
        listeners: times(64, (l) => ({ name: `l${l}`, port: 1_000 + l, protocol: 'HTTP', hostname: host(i, turn) })),
      }),
    ),
  HTTPRoute: (turn) =>
    times(256, (i) =>
      spec({
        parentRefs: [service(i)],
        rules: times(16, (rule) => ({
          matches: times(8, (m) => ({ path: { type: 'PathPrefix', value: `/${turn}/${i}/${rule}/${m}` } })),
          backendRefs,
        })),
      }),
    ),
  GRPCRoute: (turn) =>
    times(256, (i) =>
      spec({
        parentRefs: [service(i)],
        rules: times(16, (rule) => ({
          matches: times(8, (m) => ({ method: { service: `a.S${turn}_${i}_${rule}_${m}` } })),
          backendRefs,
        })),
      }),
    ),
  BackendTLSPolicy: (turn) =>
    times(2_000, (i) =>
      spec({
        targetRefs: [{ group: '', kind: 'Service', name: `svc${i % 20}` }],
        validation: { hostname: `a${turn}.test`, wellKnownCACertificates: 'System' },
      }),
    ),
  TCPRoute: (turn) =>
    times(2_000, (i) =>
      spec({ parentRefs: [service(i)], rules: [{ backendRefs: [{ name: 'svc0', port: 80, weight: turn + 1 }] }] }),
    ),
  TLSRoute: (turn) =>
    times(2_000, (i) => spec({ parentRefs: [{ name: 'edge' }], hostnames: [host(i, turn)], rules: [{ backendRefs }] })),
  ReferenceGrant: (turn) =>
    times(2_000, () =>
      spec({
        from: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: `n${turn}` }],
        to: [{ group: '', kind: 'Service' }],
      }),
    ),
};
