import { describe, expect, it } from 'vitest';
import { type GivenNode, givenMesh, givenProxy } from '../../../test/fixtures/given-mesh.ts';
import type { ProxyShape } from './proxy-shape.ts';
import { ShapeTable } from './shape-table.ts';

const service = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web, namespace: default }
spec:
  hosts: [web.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP }]
  endpoints: [{ address: 10.0.0.1 }]
---`;
const sidecar = `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: { name: own, namespace: default }
spec: { ingress: [{ port: { number: 9080, name: http, protocol: HTTP }, defaultEndpoint: "0.0.0.0:8080" }] }
---`;
const mesh = givenMesh(service);
const table = new ShapeTable();
const shapeOf = (node: GivenNode, context = mesh.context): ProxyShape => table.shapeOf(givenProxy(node), context);

describe('proxies', () => {
  it('share a shape if they differ only in addresses and irrelevant metadata, in any order', () => {
    const one = shapeOf({
      ip: '10.1.0.1',
      metadata: { NAME: 'a', HTTP10: '1', IDLE_TIMEOUT: '5s' },
      labels: { a: '1', b: '2' },
    });
    const other = shapeOf({
      ip: '10.1.0.2',
      metadata: { IDLE_TIMEOUT: '5s', HTTP10: '1', NAME: 'b' },
      labels: { b: '2', a: '1' },
    });
    expect(other).toBe(one);
    expect(one.ownAddresses).toEqual([]);
    expect(Object.keys(one)).not.toContain('id');
  });

  it.each<[string, GivenNode]>([
    ['namespace', { namespace: 'other' }],
    ['labels', { labels: { app: 'x' } }],
    ['type', { type: 'router' }],
    ['address family', { ip: '2001:db8::1' }],
    ['network', { metadata: { NETWORK: 'n' } }],
    ['cluster', { metadata: { CLUSTER_ID: 'c' } }],
    ['interception mode', { metadata: { INTERCEPTION_MODE: 'NONE' } }],
    ['HTTP/1.0', { metadata: { HTTP10: '1' } }],
    ['certificates', { metadata: { WORKLOAD_CERTIFICATES: 'true' } }],
    ['agent version', { metadata: { ISTIO_VERSION: '1.28.0' } }],
    ['DNS', { metadata: { DNS_CAPTURE: 'true' } }],
    ['placeholder addresses', { metadata: { DNS_AUTO_ALLOCATE: 'true' } }],
    ['list of served services', { ip: '10.0.0.1' }],
  ])('share a shape only if they have the same %s', (_case, node) => {
    expect(shapeOf(node)).not.toBe(shapeOf({}));
  });
});

it('addresses belong to the shape only if a Sidecar object has ingress listeners', () => {
  const { context } = givenMesh(service + sidecar);
  const firstShape = shapeOf({ ip: '10.1.0.1' }, context);
  expect(firstShape.ownAddresses).toEqual(['10.1.0.1']);
  expect(shapeOf({ ip: '10.1.0.2' }, context)).not.toBe(firstShape);
  expect(shapeOf({ ip: '10.1.0.2', namespace: 'other' }, context).ownAddresses).toEqual([]);
});

describe('standard metrics of a proxy', () => {
  const envoy = { version: [1, 40, 0], hasV8: true, hasStatsLogger: true } as const;

  it.each([
    ['by Envoy if no chartpilot agent reports anything', {}, envoy, 'stats'],
    ['by no program if the chartpilot agent counts nothing', { WASM_FETCH: 'true' }, envoy, undefined],
    ['by no program if the node reports so', { STANDARD_METRICS: 'false' }, envoy, undefined],
    ['by the agent if it reports so', { WASM_FETCH: 'true', STANDARD_METRICS: 'true' }, envoy, 'expressions'],
    ['by no program if Envoy cannot count them', {}, { version: [1, 39, 0], hasV8: true } as const, undefined],
  ])('are counted %s', (_, metadata, build, expected) => {
    expect(shapeOf({ metadata, envoy: build }).metadata.STANDARD_METRICS).toBe(expected);
  });
});

describe('the agent version of a proxy', () => {
  it('does not distinguish shapes, whatever form the node reports its agent in', () => {
    const one = shapeOf({ metadata: { ISTIO_VERSION: '1.28.0' } });
    expect(shapeOf({ metadata: { ISTIO_VERSION: '1.30.1' } })).toBe(one);
    expect(shapeOf({ metadata: { WORKLOAD_CERTIFICATES: true } })).toBe(one);
    expect(one.metadata.WORKLOAD_CERTIFICATES).toBe('true');
  });

  it.each([{}, { ISTIO_VERSION: '' }, { ISTIO_VERSION: '1.28.0', WORKLOAD_CERTIFICATES: 'false' }])(
    'implies that there are no certificates if there is no agent or the node reports none: %j',
    (metadata) => {
      const one = shapeOf({ metadata });
      expect(one).toBe(shapeOf({}));
      expect(one.metadata).toEqual({});
    },
  );

  it('distinguishes shapes if an active EnvoyFilter matches on it, as with other metadata', () => {
    const filter = (proxy: string): string => `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: { name: f, namespace: shop }
spec: { configPatches: [{ applyTo: CLUSTER, match: { proxy: ${proxy} }, patch: { operation: REMOVE } }] }
---`;
    const matchingContext = givenMesh(service + filter('{ proxyVersion: "^1[.]3.*" }')).context;
    const at = (namespace: string, version: string, context = matchingContext, nodeFields = {}) =>
      shapeOf({ namespace, metadata: { ISTIO_VERSION: version, ...nodeFields } }, context);
    expect(at('shop', '1.28.0').matchedMetadata).toEqual({ ISTIO_VERSION: '1.28.0' });
    expect(at('shop', '1.28.0')).not.toBe(at('shop', '1.30.0'));
    expect(at('shop', '1.28.0')).toBe(at('shop', '1.28.0', matchingContext, { COLOR: 'red' }));
    expect(at('other', '1.28.0')).toBe(at('other', '1.30.0'));
    const colours = givenMesh(service + filter('{ metadata: { COLOR: red } }')).context;
    expect(at('shop', '1.28.0', colours, { COLOR: 'red' })).not.toBe(at('shop', '1.28.0', colours));
    expect(at('shop', '1.28.0', colours)).toBe(at('shop', '1.30.0', colours));
  });

  it('distinguishes shapes from the first push context whose filter matches on it', () => {
    const proxy = givenProxy({ namespace: 'shop', labels: { app: 'alone' }, metadata: { ISTIO_VERSION: '1.28.0' } });
    const filter = `
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: { name: f, namespace: istio-system }
spec: { configPatches: [{ applyTo: CLUSTER, match: { proxy: { proxyVersion: x } }, patch: { operation: REMOVE } }] }`;
    const previous = table.shapeOf(proxy, mesh.context);
    const next = table.shapeOf(proxy, givenMesh(service + filter).context, previous);
    expect(next.matchedMetadata).toEqual({ ISTIO_VERSION: '1.28.0' });
    expect(table.shapeOf(proxy, mesh.context, next)).toBe(previous);
  });
});

it('the Kubernetes node belongs to the shape only if a service is node-local', () => {
  const local = `
apiVersion: v1
kind: Service
metadata: { name: dns, namespace: shop }
spec: { clusterIP: 10.5.0.1, internalTrafficPolicy: Local, ports: [{ name: dns, port: 53 }] }`;
  const shapeOn = (node: string, yaml: string) => shapeOf({ metadata: { NODE_NAME: node } }, givenMesh(yaml).context);
  expect(shapeOn('n1', service + local).nodeName).toBe('n1');
  expect(shapeOn('n1', service + local)).not.toBe(shapeOn('n2', service + local));
  expect(shapeOn('n1', service)).toBe(shapeOn('n2', service));
  expect(shapeOn('n1', service).nodeName).toBe('');
  const [proxy, localContext] = [givenProxy({ metadata: { NODE_NAME: 'n1' } }), givenMesh(service + local).context];
  expect(table.shapeOf(proxy, localContext, table.shapeOf(proxy, mesh.context)).nodeName).toBe('n1');
});

it("a proxy keeps its shape in the next push context unless the shape's inputs change", () => {
  const proxy = givenProxy({ ip: '10.0.0.1' });
  const previous = table.shapeOf(proxy, mesh.context);
  expect(previous.serviceTargets.map(({ port }) => port.number)).toEqual([80]);
  expect(table.shapeOf(proxy, mesh.context, previous)).toBe(previous);
  const movedContext = givenMesh(service.replace('10.0.0.1', '10.0.0.2')).context;
  const nextShape = table.shapeOf(proxy, movedContext, previous);
  expect(nextShape).not.toBe(previous);
  expect(nextShape.serviceTargets).toEqual([]);
});

it('the completeness of a shape is determined once per push context for all its proxies', () => {
  const { context } = givenMesh(service);
  const nodes = Array.from({ length: 50 }, (_, i) => givenProxy({ ip: `10.1.0.${i}` }));
  const shapes = new ShapeTable();
  const previous = nodes.map((node) => shapes.shapeOf(node, mesh.context));
  expect(new Set(previous).size).toBe(1);
  const lookups: object[] = [];
  const countingContext = {
    sidecarScopeFor: context.sidecarScopeFor.bind(context),
    serviceTargetsOf: context.serviceTargetsOf.bind(context),
    workloadOf: context.workloadOf.bind(context),
    policiesFor: (of: Parameters<typeof context.policiesFor>[0]) => {
      lookups.push(of);
      return context.policiesFor(of);
    },
  };
  expect(nodes.map((node, i) => shapes.shapeOf(node, countingContext, previous[i]))).toEqual(previous);
  expect(lookups).toHaveLength(1);
  // If the shape contains addresses, each proxy is checked.
  const other = givenMesh(service + sidecar).context;
  expect(new Set(nodes.map((node, i) => shapes.shapeOf(node, other, previous[i]))).size).toBe(nodes.length);
});
