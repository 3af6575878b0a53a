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
const host = (index: number, revision = 0): string => `h${index}-${revision}.mallory.test`;
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
  AuthorizationPolicy: (revision) =>
    times(1_000, (i) =>
      spec({
        selector: selector(i),
        rules: times(10, (rule) => ({ from: [{ source: { principals: [`p${rule}-${revision}`] } }] })),
      }),
    ),
  DestinationRule: (revision) =>
    times(38, (i) =>
      spec({
        host: i < 20 ? `svc${i}.mallory.svc.cluster.local` : `web${i - 20}.mallory.test`,
        subsets: times(512, (s) => ({ name: `s${s}`, labels: { v: `${s}-${revision}` } })),
      }),
    ),
  EnvoyFilter: (revision) =>
    times(40, (i) =>
      spec({
        workloadSelector: { labels: { app: `mallory-${i}` } },
        configPatches: times(512, () => ({
          applyTo: 'CLUSTER',
          match: { cluster: { service: 'web.bank.test' } },
          patch: { operation: 'MERGE', value: { connect_timeout: `${revision + 1}s` } },
        })),
      }),
    ),
  Gateway: (revision) =>
    times(20, (i) =>
      spec({
        selector: { istio: 'ingressgateway' },
        servers: times(100, (s) => ({
          port: { number: 1_000 + s, name: `p${s}`, protocol: 'HTTP' },
          hosts: times(20, (h) => host(i * 20 + h, revision)),
        })),
      }),
    ),
  PeerAuthentication: (revision) =>
    times(1_000, (i) =>
      spec({
        selector: selector(i),
        mtls: { mode: revision % 2 === 0 ? 'STRICT' : 'PERMISSIVE' },
        portLevelMtls: Object.fromEntries(times(32, (port) => [`${port + 1}`, { mode: 'DISABLE' }])),
      }),
    ),
  ProxyConfig: (revision) =>
    times(2_000, (i) => spec({ selector: selector(i), environmentVariables: { A: `${revision}` } })),
  RequestAuthentication: (revision) =>
    times(1_000, (i) => spec({ selector: selector(i), jwtRules: [{ issuer: `i${revision}`, jwks: '{"keys":[]}' }] })),
  ServiceEntry: (revision) =>
    times(9, (i) =>
      spec({
        hosts: times(2_048, (h) => host(i * 2_048 + h, revision)),
        ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
        resolution: 'STATIC',
        endpoints: times(16, (e) => ({ address: address(e) })),
      }),
    ),
  Sidecar: (revision) =>
    times(500, (i) =>
      spec({
        workloadSelector: { labels: { app: `mallory-${i}` } },
        egress: [{ hosts: times(50, (h) => `*/${host(h, revision)}`) }],
      }),
    ),
  Telemetry: (revision) =>
    times(2_000, (i) => spec({ selector: selector(i), accessLogging: [{ disabled: revision % 2 === 0 }] })),
  VirtualService: (revision) =>
    times(4, (i) =>
      spec({
        hosts: [`web${i}.mallory.test`],
        http: times(4_096, (r) => ({ match: [{ uri: { exact: `/${revision}/${r}` } }], route })),
      }),
    ),
  TrafficExtension: (revision) =>
    times(2_000, (i) => spec({ selector: selector(i), wasm: { url: `file:///x-${revision}` } })),
  WasmPlugin: (revision) => times(2_000, (i) => spec({ selector: selector(i), url: `file:///x-${revision}` })),
  WorkloadEntry: (revision) =>
    times(4_000, (i) => spec({ address: address(i), labels: { app: 'selected', turn: `${revision}` } })),
  WorkloadGroup: (revision) =>
    times(2_000, () => spec({ metadata: { labels: { app: 'mallory' } }, template: { network: `n${revision}` } })),
  ConfigMap: (revision) => times(2_000, () => ({ body: { data: { 'ca.crt': `x${revision}` } } })),
  Endpoints: (revision) =>
    times(100, (i) => ({
      body: {
        subsets: [{ addresses: times(1_000, (a) => ({ ip: address(i + a + revision) })), ports: [{ port: 80 }] }],
      },
    })),
  EndpointSlice: (revision) =>
    times(100, (i) => ({
      labels: { 'kubernetes.io/service-name': `svc${i % 20}` },
      body: {
        addressType: 'IPv4',
        endpoints: times(1_000, (e) => ({
          addresses: [address(i * 1_000 + e + revision)],
          conditions: { ready: true },
        })),
        ports: [{ name: 'http', port: 80, protocol: 'TCP' }],
      },
    })),
  Ingress: (revision) =>
    times(20, (i) =>
      spec({
        ingressClassName: 'istio',
        rules: [
          {
            host: host(i),
            http: {
              paths: times(1_000, (p) => ({
                path: `/${revision}/${p}`,
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
  Node: (revision) => [{ body: {}, labels: { turn: `${revision}` } }],
  Pod: (revision) =>
    times(6_000, (i) => ({
      labels: { app: `mallory-${i % 100}`, turn: `${revision}` },
      body: {
        spec: {
          containers: [{ name: 'c', ports: [{ name: 'http', containerPort: 80 }] }],
          serviceAccountName: 'default',
        },
        status: { phase: 'Running', podIP: address(i), podIPs: [{ ip: address(i) }] },
      },
    })),
  Secret: (revision) =>
    times(2_000, () => ({ body: { type: 'Opaque', data: { k: revision % 2 === 0 ? 'eA==' : 'eQ==' } } })),
  Service: (revision) =>
    times(980, (i) =>
      spec({
        clusterIP: `10.97.${i >> 8}.${i & 255}`,
        ports: times(20, (p) => ({ name: `http-${p}`, port: 1_000 + p + revision })),
      }),
    ),
  GatewayClass: () => [spec({ controllerName: 'istio.io/gateway-controller' })],
  KubernetesGateway: (revision) =>
    times(100, (i) =>
      spec({
        gatewayClassName: 'istio',
        listeners: times(64, (l) => ({
          name: `l${l}`,
          port: 1_000 + l,
          protocol: 'HTTP',
          hostname: host(i, revision),
        })),
      }),
    ),
  HTTPRoute: (revision) =>
    times(256, (i) =>
      spec({
        parentRefs: [service(i)],
        rules: times(16, (rule) => ({
          matches: times(8, (m) => ({ path: { type: 'PathPrefix', value: `/${revision}/${i}/${rule}/${m}` } })),
          backendRefs,
        })),
      }),
    ),
  GRPCRoute: (revision) =>
    times(256, (i) =>
      spec({
        parentRefs: [service(i)],
        rules: times(16, (rule) => ({
          matches: times(8, (m) => ({ method: { service: `a.S${revision}_${i}_${rule}_${m}` } })),
          backendRefs,
        })),
      }),
    ),
  BackendTLSPolicy: (revision) =>
    times(2_000, (i) =>
      spec({
        targetRefs: [{ group: '', kind: 'Service', name: `svc${i % 20}` }],
        validation: { hostname: `a${revision}.test`, wellKnownCACertificates: 'System' },
      }),
    ),
  TCPRoute: (revision) =>
    times(2_000, (i) =>
      spec({ parentRefs: [service(i)], rules: [{ backendRefs: [{ name: 'svc0', port: 80, weight: revision + 1 }] }] }),
    ),
  TLSRoute: (revision) =>
    times(2_000, (i) =>
      spec({ parentRefs: [{ name: 'edge' }], hostnames: [host(i, revision)], rules: [{ backendRefs }] }),
    ),
  ReferenceGrant: (revision) =>
    times(2_000, () =>
      spec({
        from: [{ group: 'gateway.networking.k8s.io', kind: 'HTTPRoute', namespace: `n${revision}` }],
        to: [{ group: '', kind: 'Service' }],
      }),
    ),
};
