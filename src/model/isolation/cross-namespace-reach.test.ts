import { describe, expect, it } from 'vitest';
import { readConfigFile } from '../config/config-file.ts';
import { configSetOf } from '../config/config-set.ts';
import { problemText } from '../config/problem.ts';
import { defaultMeshConfig, type MeshConfig } from '../mesh/mesh-config.ts';
import { firstSlot } from '../services/auto-allocate.ts';
import { crossNamespaceReach, reachCodes } from './cross-namespace-reach.ts';

const bank = `
apiVersion: v1
kind: Service
metadata: {name: ledger, namespace: bank}
spec: {clusterIP: 10.96.1.1, ports: [{name: http, port: 80}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: rates, namespace: bank}
spec: {hosts: [rates.example.com], addresses: [10.200.0.1], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}
`;

/** A host whose allocated address equals that of `mallory/a.test`. */
const collidingHost = Array.from({ length: 2_000_000 }, (_, index) => `h${index}.test`).find(
  (host) => firstSlot(`zoo/${host}`) === firstSlot('mallory/a.test'),
);
const collision = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: younger, namespace: zoo, creationTimestamp: 2030-01-01T00:00:00Z}
spec: {hosts: [${collidingHost}], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}
`;

interface Options {
  readonly mesh?: Partial<MeshConfig>;
  readonly scopesGateways?: boolean;
  readonly namespace?: string;
}

/** Returns `code field` for each finding about objects of the namespace. */
function reachFindings(
  kind: string,
  body: string,
  { mesh, scopesGateways = false, namespace = 'mallory' }: Options = {},
): string[] {
  const group: Record<string, string> = {
    Service: 'v1',
    Ingress: 'networking.k8s.io/v1',
    EnvoyFilter: 'networking.istio.io/v1alpha3',
    WasmPlugin: 'extensions.istio.io/v1alpha1',
    KubernetesGateway: 'gateway.networking.k8s.io/v1',
  };
  const [metadata = '', spec = ''] = body.startsWith('{metadata') ? body.split(' spec: ') : ['', body];
  const extraMetadata = metadata === '' ? '' : `, ${metadata.slice('{metadata: {'.length, -2)}`;
  const text = `${bank}---${collision}---\napiVersion: ${group[kind] ?? 'networking.istio.io/v1'}\nkind: ${kind.replace('Kubernetes', '')}\nmetadata: {name: one, namespace: ${namespace}${extraMetadata}}\nspec: ${spec}\n`;
  const { configs, problems } = readConfigFile('a.yaml', text, { creationTimestamp: 0 });
  expect(problems.filter(({ severity }) => severity === 'error').map(problemText)).toEqual([]);
  const settings = { mesh: { ...defaultMeshConfig, ...mesh }, scopesGateways, domain: 'cluster.local' };
  return [...crossNamespaceReach(configSetOf(configs), settings)]
    .filter((reach) => reach !== undefined)
    .filter(({ config }) => config.namespace === namespace)
    .map(({ code, field }) => `${code} ${field}`);
}

const route = 'http: [{redirect: {authority: a.test}}]';
const port = '{number: 80, name: http, protocol: HTTP}';
const tcp = '{number: 3306, name: tcp, protocol: TCP}';
const rows: readonly (readonly [kind: string, body: string, found: readonly string[], options?: Options])[] = [
  ['VirtualService', `{hosts: [ledger.bank.svc.cluster.local], ${route}}`, ['routes-foreign-host spec.hosts[0]']],
  ['VirtualService', `{hosts: [mine, ledger.bank.svc], ${route}}`, ['routes-foreign-host spec.hosts[1]']],
  ['VirtualService', `{hosts: ["*.bank.svc.cluster.local"], ${route}}`, ['routes-foreign-host spec.hosts[0]']],
  ['VirtualService', `{hosts: ["*.example.com"], ${route}}`, ['routes-foreign-host spec.hosts[0]']],
  ['VirtualService', `{hosts: ["*"], gateways: [bank/front], ${route}}`, ['routes-foreign-host spec.hosts[0]']],
  ['VirtualService', `{hosts: [rates.example.com], exportTo: [bank], ${route}}`, ['routes-foreign-host spec.hosts[0]']],
  ['VirtualService', `{hosts: [rates.example.com], exportTo: ["."], ${route}}`, []],
  ['VirtualService', `{hosts: [rates.example.com], ${route}}`, [], { mesh: { defaultVirtualServiceExportTo: ['.'] } }],
  ['VirtualService', `{hosts: [mine.mallory.svc.cluster.local, mine, other.example.org], ${route}}`, []],
  ['VirtualService', `{${route}}`, []],
  [
    'DestinationRule',
    '{host: ledger.bank.svc.cluster.local, exportTo: ["*"], trafficPolicy: {tls: {mode: DISABLE}}}',
    ['rules-foreign-host spec.exportTo'],
  ],
  ['DestinationRule', '{host: ledger.bank.svc.cluster.local, trafficPolicy: {tls: {mode: DISABLE}}}', []],
  [
    'ServiceEntry',
    `{hosts: [rates.example.com], resolution: DNS, ports: [${port}]}`,
    ['claims-foreign-host spec.hosts[0]'],
  ],
  ['ServiceEntry', `{hosts: ["*.svc.cluster.local"], ports: [${port}]}`, ['claims-foreign-host spec.hosts[0]']],
  [
    'ServiceEntry',
    `{hosts: [a.test], addresses: [0.0.0.0/0], ports: [${tcp}]}`,
    ['captures-addresses spec.addresses[0]'],
  ],
  ['ServiceEntry', `{hosts: [a.test], addresses: ["::/0"], ports: [${tcp}]}`, ['captures-addresses spec.addresses[0]']],
  [
    'ServiceEntry',
    `{hosts: [a.test], addresses: [10.96.1.1], ports: [${tcp}]}`,
    ['captures-addresses spec.addresses[0]'],
  ],
  [
    'ServiceEntry',
    `{hosts: [a.test], addresses: [10.200.0.1], ports: [${tcp}]}`,
    ['captures-addresses spec.addresses[0]'],
  ],
  ['ServiceEntry', `{hosts: [a.test], addresses: [10.66.0.0/24, 10.66.1.1], ports: [${tcp}]}`, []],
  ['ServiceEntry', `{hosts: [a.test], ports: [${port}, ${tcp}]}`, ['captures-port spec.ports[1]']],
  ['ServiceEntry', `{hosts: [rates.example.com], exportTo: ["."], addresses: [0.0.0.0/0], ports: [${tcp}]}`, []],
  ['ServiceEntry', `{hosts: [a.test], resolution: DNS, ports: [${port}]}`, ['moves-allocated-address spec.hosts']],
  ['ServiceEntry', `{hosts: [a.test], addresses: [10.200.0.9], resolution: DNS, ports: [${port}]}`, []],
  [
    'ServiceEntry',
    `{hosts: ["*.b.test"], resolution: DYNAMIC_DNS, ports: [${port}]}`,
    ['adds-dynamic-dns spec.resolution'],
  ],
  [
    'ServiceEntry',
    `{hosts: [b.test], resolution: STATIC, endpoints: [{address: 10.0.0.1}, {address: 127.0.0.1}, {address: "::1"}], ports: [${port}]}`,
    ['reaches-proxy-loopback spec.endpoints[1].address', 'reaches-proxy-loopback spec.endpoints[2].address'],
  ],
  [
    'ServiceEntry',
    `{hosts: [b.test], exportTo: ["."], resolution: STATIC, endpoints: [{address: 127.0.0.1}], ports: [${port}]}`,
    [],
  ],
  ['Service', '{type: ExternalName, externalName: rates.example.com}', ['aliases-foreign-host spec.externalName']],
  ['Service', '{type: ExternalName, externalName: other.example.org}', []],
  [
    'Service',
    '{metadata: {labels: {topology.istio.io/network: west}}} spec: {clusterIP: 10.96.6.6, ports: [{port: 15443}]}',
    ['is-network-gateway metadata.labels'],
  ],
  ['Service', '{clusterIP: 10.200.0.1, ports: [{name: tcp, port: 80}]}', ['captures-addresses spec.clusterIP']],
  ['Service', '{clusterIP: None, ports: [{name: tcp, port: 80}]}', ['captures-addresses spec.ports[0]']],
  ['Service', '{clusterIP: None, selector: {app: a}, ports: [{name: tcp, port: 80}]}', []],
  ['Service', '{clusterIP: None, ports: [{name: http, port: 80}]}', []],
  [
    'Gateway',
    `{selector: {istio: ingressgateway}, servers: [{port: ${port}, hosts: ["*"]}]}`,
    ['selects-foreign-workloads spec.selector'],
  ],
  ['Gateway', `{servers: [{port: ${port}, hosts: ["*"]}]}`, ['selects-foreign-workloads spec.selector']],
  ['Gateway', `{servers: [{port: ${port}, hosts: ["*"]}]}`, [], { scopesGateways: true }],
  ['Gateway', `{servers: [{port: ${port}, hosts: ["*"]}]}`, [], { namespace: 'istio-system' }],
  ['Ingress', '{rules: [{http: {paths: []}}, {host: a.test}]}', ['takes-every-host spec.rules[0].host']],
  ['Ingress', '{defaultBackend: {service: {name: a, port: {number: 80}}}}', []],
  [
    'KubernetesGateway',
    '{gatewayClassName: istio, listeners: [{name: a, port: 80, protocol: HTTP}, {name: b, port: 81, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]}',
    ['takes-routes-of-all-namespaces spec.listeners[1].allowedRoutes'],
  ],
  [
    'EnvoyFilter',
    '{configPatches: [{applyTo: CLUSTER, patch: {operation: REMOVE}}]}',
    ['patches-whole-mesh spec'],
    { namespace: 'istio-system' },
  ],
  ['EnvoyFilter', '{configPatches: [{applyTo: CLUSTER, patch: {operation: REMOVE}}]}', []],
  ['WasmPlugin', '{url: "oci://a.test/b"}', ['patches-whole-mesh spec'], { namespace: 'istio-system' }],
  [
    'VirtualService',
    `{hosts: [rates.example.com], exportTo: ["*"], ${route}}`,
    ['export-not-allowed spec.exportTo'],
    { mesh: { exportingNamespaces: ['bank'] } },
  ],
];

const cases = rows.map(([kind, body, expected, options]) => ({ kind, body, expected, options }));

describe('crossNamespaceReach', () => {
  it.each(cases)('reports for $kind $body: $expected', ({ kind, body, expected, options }) => {
    expect(reachFindings(kind, body, options)).toEqual(expected);
  });

  it('reports each code for at least one of the rows', () => {
    const foundCodes = new Set(cases.flatMap(({ expected }) => expected.map((one) => one.split(' ')[0])));
    expect([...foundCodes].sort()).toEqual([...reachCodes].sort());
  });

  it.each(cases.filter(({ expected, options }) => expected.length > 0 && options === undefined))(
    'reports nothing for $kind $body if the namespace is trusted',
    ({ kind, body }) => {
      expect(reachFindings(kind, body, { mesh: { exportingNamespaces: ['bank', 'mallory'] } })).toEqual([]);
    },
  );
});
