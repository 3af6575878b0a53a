import { describe, expect, it } from 'vitest';
import { type GivenNode, givenMesh, givenProxy } from './given-mesh.ts';
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

describe('proxies have one shape', () => {
  it('that differ in address, and in metadata that nothing is made from, in whatever order they tell it', () => {
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
    ['interception', { metadata: { INTERCEPTION_MODE: 'NONE' } }],
    ['HTTP/1.0', { metadata: { HTTP10: '1' } }],
    ['certificates', { metadata: { WORKLOAD_CERTIFICATES: 'true' } }],
    ['what its workload serves', { ip: '10.0.0.1' }],
  ])('only if their %s is the same', (_what, node) => {
    expect(shapeOf(node)).not.toBe(shapeOf({}));
  });
});

it('addresses count where a Sidecar object forwards to them, and only there', () => {
  const { context } = givenMesh(service + sidecar);
  const own = shapeOf({ ip: '10.1.0.1' }, context);
  expect(own.ownAddresses).toEqual(['10.1.0.1']);
  expect(shapeOf({ ip: '10.1.0.2' }, context)).not.toBe(own);
  expect(shapeOf({ ip: '10.1.0.2', namespace: 'other' }, context).ownAddresses).toEqual([]);
});

it('a proxy keeps its shape in the next context unless what it depends on is another', () => {
  const proxy = givenProxy({ ip: '10.0.0.1' });
  const before = table.shapeOf(proxy, mesh.context);
  expect(before.serviceTargets.map(({ port }) => port.number)).toEqual([80]);
  expect(table.shapeOf(proxy, mesh.context, before)).toBe(before);
  const moved = givenMesh(service.replace('10.0.0.1', '10.0.0.2')).context;
  const after = table.shapeOf(proxy, moved, before);
  expect(after).not.toBe(before);
  expect(after.serviceTargets).toEqual([]);
});
