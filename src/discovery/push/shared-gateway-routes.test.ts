/** Gateways with equal properties share one list of routes. */
import { describe, expect, it } from 'vitest';
import { type GivenNodeOptions, GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import { countedWork, sumOf } from '../../../test/harness/counted-work.ts';
import type { Config } from '../../model/config/config.ts';
import { routeType } from '../../networking/index.ts';

const times = <T>(count: number, build: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => build(i));
const serviceHost = (index: number): string => `s${index}.a.test`;
const routeName = (index: number): string => `https.443.https-${index}.front.edge`;

const service = (index: number, namespace = 'a', extraSpec: object = {}): Config =>
  givenObject('ServiceEntry', namespace, `s${index}`, {
    hosts: [serviceHost(index)],
    ports: [{ number: 8080, name: 'http', protocol: 'HTTP' }],
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    endpoints: [{ address: '10.1.0.1' }],
    ...extraSpec,
  });
const gatewayOf = (hosts: number): Config => {
  const servers = times(hosts, (index) => ({
    port: { number: 443, name: `https-${index}`, protocol: 'HTTPS' },
    hosts: [`*/h${index}.test`],
    tls: { mode: 'SIMPLE', credentialName: `c${index}` },
  }));
  return givenObject('Gateway', 'edge', 'front', { selector: { app: 'gateway' }, servers }, 1);
};
const virtualService = (index: number, timeoutMs = 1, extraSpec: object = {}, match?: object): Config => {
  const route = [{ destination: { host: serviceHost(index) } }];
  const http = [{ timeoutMs, route, ...(match && { match: [match] }) }];
  return givenObject('VirtualService', 'edge', `v${index}`, {
    ...{ hosts: [`h${index}.test`], gateways: ['edge/front'], http },
    ...extraSpec,
  });
};
const hashing = (namespace: string, index: number, extraSpec: object = {}): Config =>
  givenObject('DestinationRule', namespace, 'hashing', {
    host: serviceHost(index),
    trafficPolicy: { loadBalancer: { consistentHash: { useSourceIp: true } } },
    ...extraSpec,
  });

const objectsOf = (hosts: number): Config[] => [
  gatewayOf(hosts),
  ...times(hosts, (index) => service(index)),
  ...times(hosts, (index) => virtualService(index)),
];

/** Returns this number of workloads with different labels, two in each namespace. */
const gateways = (count: number): GivenNodeOptions[] =>
  times(count, (index) => ({ namespace: `ns-${index >> 1}`, labels: { app: 'gateway', ownGateway: `${index}` } }));

function connectGateways(world: GivenWorld, all: readonly GivenNodeOptions[], hosts: number) {
  const nodes = all.map((nodeOptions, index) => world.connect(`10.9.0.${index}`, { type: 'router', ...nodeOptions }));
  const names = times(hosts, routeName);
  const readRoutes = () => nodes.map((node) => node.get(routeType, names)!.resources);
  return { nodes, take: readRoutes };
}

describe('routes of gateways', () => {
  it('are built and encoded once for all labels and namespaces, even after a change', () => {
    const world = new GivenWorld(objectsOf(3));
    const { nodes, take } = connectGateways(world, gateways(6), 3);
    expect(new Set(take()).size).toBe(1);
    expect(world.encodings).toBe(3);
    const change = world.put(virtualService(1, 2));
    for (const node of nodes) expect(node.typesToPush(change, [routeType])).toEqual([routeType]);
    expect(new Set(take()).size).toBe(1);
    expect(world.encodings).toBe(6);
  });

  const ownGateway = { namespace: 'ns-0', labels: { app: 'gateway', ownGateway: 'yes' } };
  const other = { namespace: 'ns-9', labels: { app: 'gateway' } };
  const leader = { app: 'gateway', ownGateway: 'yes' };
  const olderGateway = givenObject('Gateway', 'edge', 'more', {
    selector: { ownGateway: 'yes' },
    servers: [
      { port: { number: 443, name: 'more', protocol: 'HTTPS' }, hosts: ['*/h0.test'], tls: { mode: 'SIMPLE' } },
    ],
  });
  const merge = { operation: 'MERGE', value: { name: 'patched' } };
  const filter = givenObject('EnvoyFilter', 'ns-0', 'patch', {
    workloadSelector: {},
    configPatches: [{ applyTo: 'HTTP_ROUTE', match: { context: 'GATEWAY' }, ...merge }],
  });
  const differences: Readonly<Record<string, readonly Config[]>> = {
    'a match on labels of the client': [virtualService(0, 1, {}, { sourceLabels: { ownGateway: 'yes' } })],
    'a match on its namespace': [virtualService(0, 1, {}, { sourceNamespace: 'ns-0' })],
    'a virtual service for some namespaces': [virtualService(0, 1, { exportTo: ['ns-9'] })],
    'a rule of its namespace about a host that it leads to': [hashing('ns-0', 0)],
    'a rule of the namespace for chosen workloads': [hashing('ns-0', 0, { workloadSelector: leader })],
    'a service that its namespace alone sees': [service(0, 'ns-0', { exportTo: ['.'] }), hashing('ns-0', 0)],
    'an older Gateway object with one of the hosts': [olderGateway],
    'an EnvoyFilter of its namespace': [filter],
  };
  it.each(Object.entries(differences))('are separate for gateways that differ because of %s', (_, objects) => {
    const world = new GivenWorld(objectsOf(2));
    const { nodes, take } = connectGateways(world, [ownGateway, other], 2);
    const [first, secondRoutes] = take();
    expect(first).toBe(secondRoutes);
    for (const object of objects) {
      const change = world.put(object);
      for (const node of nodes) node.typesToPush(change, [routeType]);
    }
    const [owned, otherRoutes] = take();
    expect(owned).not.toBe(otherRoutes);
  });

  it('are empty for a gateway that must not bind the port, even if other gateways with the same labels have routes', () => {
    const unprivileged = { ...ownGateway, metadata: { UNPRIVILEGED_POD: 'true' } };
    const [bound, unbound] = connectGateways(new GivenWorld(objectsOf(1)), [ownGateway, unprivileged], 1).take();
    expect(bound).not.toBe(unbound);
    expect(unbound!.get(routeName(0))!.version).not.toBe(bound!.get(routeName(0))!.version);
  });

  it("are shared if the namespaces' services differ only in services that are not destinations", () => {
    const world = new GivenWorld([...objectsOf(2), service(7)]);
    const { nodes, take } = connectGateways(world, [ownGateway, other], 2);
    take();
    const change = world.put(hashing('ns-0', 7), service(8, 'ns-0', { exportTo: ['.'] }));
    for (const node of nodes) node.typesToPush(change, [routeType]);
    const [owned, otherRoutes] = take();
    expect(owned).toBe(otherRoutes);
  });

  it('cost the same for each further gateway, however many hosts there are', () => {
    const callsFor = (count: number, hosts: number): number => {
      const world = new GivenWorld(objectsOf(hosts));
      const { nodes, take } = connectGateways(world, gateways(count), hosts);
      take();
      const change = world.put(virtualService(1, 2));
      const callCounts = countedWork(() => {
        for (const node of nodes) node.typesToPush(change, [routeType]);
        take();
      });
      return sumOf(callCounts);
    };
    const callsPerGateway = (hosts: number): number => (callsFor(24, hosts) - callsFor(4, hosts)) / 20;
    const [fewCalls, manyCalls] = [callsPerGateway(20), callsPerGateway(160)];
    expect(manyCalls).toBeLessThan(fewCalls * 1.5);
  });
});
