import { expect, it } from 'vitest';
import { endpointsIn, GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import { endpointType } from '../../networking/index.ts';
import type { MeshNode } from './mesh-resources.ts';

const service = (namespace: string, name: string, address: string) =>
  givenObject('ServiceEntry', namespace, name, {
    hosts: [`${name}.example.com`],
    addresses: [],
    ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
    resolution: 'STATIC',
    location: 'MESH_INTERNAL',
    endpoints: [{ address, ports: {}, labels: {} }],
  });
const sidecar = (hosts: string[]) => givenObject('Sidecar', 'a', 'default', { egress: [{ hosts }] });
const rule = (host: string, subset: object) =>
  givenObject('DestinationRule', 'a', 'rule', { host, subsets: [{ name: 'v1', labels: subset }] });
const cluster = (name: string, subset = '') => `outbound|80|${subset}|${name}.example.com`;

/** Number of endpoints by cluster in the node's push context. */
function endpointsOf(node: MeshNode, names: readonly string[]): Record<string, number> {
  const { resources } = node.get(endpointType, names)!;
  return Object.fromEntries(names.map((name) => [name, endpointsIn(resources.get(name))]));
}

const createScopedWorld = () =>
  new GivenWorld([service('a', 'near', '10.0.0.1'), service('b', 'far', '10.0.0.2'), sidecar(['./*'])]);

it('EncodedCache builds the endpoints of a service that becomes visible, even if the same push changes other endpoints', () => {
  const world = createScopedWorld();
  const node = world.connect('10.1.0.1');
  const names = [cluster('far'), cluster('near')];
  expect(endpointsOf(node, names)).toEqual({ [cluster('far')]: 0, [cluster('near')]: 1 });
  node.typesToPush(world.put(sidecar(['./*', 'b/*']), service('a', 'near', '10.0.0.3')), [endpointType]);
  expect(endpointsOf(node, names)).toEqual({ [cluster('far')]: 1, [cluster('near')]: 1 });
});

it('EncodedCache includes an earlier change of visible services in the next request', () => {
  const world = createScopedWorld();
  const node = world.connect('10.1.0.1');
  const names = [cluster('far'), cluster('near')];
  endpointsOf(node, names);
  world.put(sidecar(['./*', 'b/*']), service('a', 'near', '10.0.0.3'));
  node.typesToPush(world.put(service('a', 'near', '10.0.0.4')), [endpointType]);
  expect(endpointsOf(node, names)).toEqual({ [cluster('far')]: 1, [cluster('near')]: 1 });
});

it('EncodedCache rebuilds the endpoints of the previous and the current host of a changed DestinationRule', () => {
  const world = new GivenWorld([service('a', 'near', '10.0.0.1'), service('a', 'other', '10.0.0.2')]);
  const node = world.connect('10.1.0.1');
  const [nearCluster, other] = [cluster('near', 'v1'), cluster('other', 'v1')];
  const now = () => endpointsOf(node, [nearCluster, other]);
  const change = (host: string) => node.typesToPush(world.put(rule(host, {})), [endpointType]);
  expect(now()).toEqual({ [nearCluster]: 0, [other]: 0 });
  change('near.example.com');
  expect(now()).toEqual({ [nearCluster]: 1, [other]: 0 });
  change('other.example.com');
  expect(now()).toEqual({ [nearCluster]: 0, [other]: 1 });
  change('*.example.com');
  expect(now()).toEqual({ [nearCluster]: 1, [other]: 1 });
});

it("EncodedCache builds the endpoints of a recreated alias, and applies only the alias' own DestinationRule", () => {
  const alias = givenObject('Service', 'a', 'also', {
    spec: { type: 'ExternalName', externalName: 'near.example.com', clusterIPs: [], externalIPs: [], ports: [] },
    status: { loadBalancer: { ingress: [] } },
  });
  const world = new GivenWorld([service('a', 'near', '10.0.0.1')]);
  const node = world.connect('10.1.0.1');
  const clusterNamed = (subset: string) => `outbound|80|${subset}|also.a.svc.cluster.local|near.example.com`;
  const now = () => endpointsOf(node, [clusterNamed(''), clusterNamed('v1')]);
  expect(now()).toEqual({ [clusterNamed('')]: 0, [clusterNamed('v1')]: 0 });
  node.typesToPush(world.put(alias), [endpointType]);
  expect(now()).toEqual({ [clusterNamed('')]: 1, [clusterNamed('v1')]: 0 });
  node.typesToPush(world.put(rule('also.a.svc.cluster.local', {})), [endpointType]);
  expect(now()).toEqual({ [clusterNamed('')]: 1, [clusterNamed('v1')]: 1 });
});
