import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { defaultMeshConfig } from '../../../model/mesh/mesh-config.ts';
import { defaultConfigLimits } from '../files/config-limits.ts';
import { MeshConfigs } from '../snapshots/mesh-configs.ts';
import { validateFiles } from './validate-files.ts';

const list = <Item>(count: number, item: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => item(index));

interface Given {
  readonly kind: string;
  readonly name: string;
  readonly age?: number;
  readonly spec: object;
}

const groups: Readonly<Record<string, string>> = {
  RequestAuthentication: 'security.istio.io/v1',
  HTTPRoute: 'gateway.networking.k8s.io/v1',
  Gateway: 'gateway.networking.k8s.io/v1',
  Service: 'v1',
  Ingress: 'networking.k8s.io/v1',
  IngressClass: 'networking.k8s.io/v1',
  GatewayClass: 'gateway.networking.k8s.io/v1',
};

const document = ({ kind, name, age = 0, spec }: Given): string =>
  JSON.stringify({
    apiVersion: groups[kind] ?? 'networking.istio.io/v1',
    kind,
    metadata: { name, namespace: 'shop', creationTimestamp: `2026-01-01T00:00:${10 + age}Z` },
    spec,
  });

const limits = {
  ...defaultConfigLimits,
  maxExportedPerNamespace: 4,
  maxGatewayRoutesPerNamespace: 4,
  maxEndpointsPerNamespace: 6,
};
const limitProblems = async (objects: readonly Given[], configLimits = limits): Promise<string[]> => {
  const text = objects.map(document).join('\n---\n');
  const { problems } = await validateFiles([], [{ file: 'shop.yaml', text }], configLimits);
  return problems
    .filter(({ code }) => code === 'LIMIT_EXCEEDED')
    .map(({ severity, line, object, field, message }) => `${severity} ${line} ${object} ${field}: ${message}`);
};

const entry = (name: string, age: number, hosts: number, extraSpec: object = {}): Given => ({
  ...{ kind: 'ServiceEntry', name, age },
  spec: {
    hosts: list(hosts, (index) => `${name}${index}.test`),
    ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
    resolution: 'DNS',
    ...extraSpec,
  },
});
const route = [{ destination: { host: 'a.test' } }];

it.each<{ readonly limit: string; readonly objects: readonly Given[]; readonly problem: RegExp }>([
  {
    limit: 'exports',
    objects: [entry('old', 0, 3), entry('young', 1, 2)],
    problem: /^error 3 ServiceEntry shop\/young : it is visible in its own namespace only: .* exports 5 .* limit is 4/,
  },
  {
    limit: 'routes at gateways',
    objects: list(2, (age) => ({
      ...{ kind: 'VirtualService', name: `v${age}`, age },
      spec: { hosts: ['a.test'], gateways: ['infra/edge'], http: list(3, () => ({ match: [{ port: 80 }], route })) },
    })),
    problem: /^error 3 VirtualService shop\/v1 : its routes respond with 503: .* exports 6 routes at gateways/,
  },
  {
    limit: 'paths of Ingresses',
    objects: [
      ...list(2, (age) => ({
        ...{ kind: 'Ingress', name: `i${age}`, age },
        spec: {
          ingressClassName: 'istio',
          rules: [
            {
              host: 'a.test',
              http: {
                paths: list(3, (index) => ({
                  ...{ path: `/${age}/${index}`, pathType: 'Exact' },
                  backend: { service: { name: 'web', port: { number: 80 } } },
                })),
              },
            },
          ],
        },
      })),
      { kind: 'IngressClass', name: 'istio', spec: { controller: 'istio.io/ingress-controller' } },
    ],
    problem: /^error 3 Ingress shop\/i1 spec\.rules: its paths respond with 503: .* have 6 paths/,
  },
  {
    limit: 'endpoints',
    objects: list(2, (age) =>
      entry(`e${age}`, age, 1, { resolution: 'STATIC', endpoints: list(4, (i) => ({ address: `10.0.0.${i}` })) }),
    ),
    problem: /^error 3 ServiceEntry shop\/e1 spec\.endpoints: its services get no endpoints: .* have 8 endpoints/,
  },
  {
    limit: 'delegates',
    objects: [
      { kind: 'VirtualService', name: 'd', spec: { http: list(1_000, (i) => ({ match: [{ port: i + 1 }], route })) } },
      {
        ...{ kind: 'VirtualService', name: 'root' },
        spec: {
          hosts: ['a.test'],
          exportTo: ['.'],
          http: [{ match: list(9, (i) => ({ port: i + 1 })), delegate: { name: 'd' } }],
        },
      },
    ],
    problem: /^error 3 VirtualService shop\/root spec\.http\[0\]\.delegate: 1 routes respond with 503/,
  },
  {
    limit: 'issuers of a namespace',
    objects: list(3, (age) => ({
      ...{ kind: 'RequestAuthentication', name: `r${age}`, age },
      spec: { jwtRules: list(100, (i) => ({ issuer: `https://idp.test/${age}/${i}` })) },
    })),
    problem: /^error 5 RequestAuthentication shop\/r2 spec\.jwtRules: has issuers beyond the limit of 200 /,
  },
  {
    limit: 'attachments',
    objects: [
      { kind: 'GatewayClass', name: 'istio', spec: { controllerName: 'istio.io/gateway-controller' } },
      {
        ...{ kind: 'Gateway', name: 'edge' },
        spec: {
          gatewayClassName: 'istio',
          listeners: list(64, (i) => ({ name: `l${i}`, port: 8_000 + i, protocol: 'HTTP' })),
        },
      },
      ...list(5, (age) => ({
        ...{ kind: 'HTTPRoute', name: `h${age}`, age },
        spec: {
          parentRefs: [{ name: 'edge' }],
          rules: list(16, (rule) => ({
            matches: list(8, (i) => ({ path: { type: 'Exact', value: `/${age}/${rule}/${i}` } })),
            backendRefs: [{ name: 'web', port: 80 }],
          })),
        },
      })),
    ],
    problem: /^warning 13 HTTPRoute shop\/h4 spec\.parentRefs\[0\]: requests for the route get 503/,
  },
])('validate reports the same object above the limit of $limit as the control plane', async ({ objects, problem }) => {
  expect(await limitProblems(objects)).toEqual([expect.stringMatching(problem)]);
});

it('validate and the control plane limit the same objects, with the same messages', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'budgets-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const objects = [entry('c', 2, 2), entry('a', 3, 2), entry('b', 1, 3), entry('d', 0, 1)];
  writeFileSync(join(folder, 'shop.yaml'), objects.map(document).join('\n---\n'));
  const configs = new MeshConfigs({ mesh: () => defaultMeshConfig, domain: 'cluster.local', limits });
  const configReading = await configs.read([folder]);
  const servedProblems = configReading.problems.filter(({ message }) => message.includes('LIMIT_EXCEEDED'));
  const { problems } = await validateFiles([folder], [], limits);
  const validated = problems.filter(({ code }) => code === 'LIMIT_EXCEEDED');
  const messagesOf = (listedProblems: readonly { readonly object?: string; readonly message: string }[]): string[] =>
    listedProblems.map(({ object, message }) => `${object}: ${message}`).sort();
  expect(messagesOf(validated)).toEqual(messagesOf(servedProblems));
  expect(validated.map(({ object }) => object).sort()).toEqual(['ServiceEntry shop/a', 'ServiceEntry shop/c']);
});

it('validate reports nothing if no limit is exceeded', async () => {
  expect(await limitProblems([entry('a', 0, 2), entry('b', 1, 2)])).toEqual([]);
});
