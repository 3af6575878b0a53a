/** Tests that the cost of a change for a sidecar's namespace does not grow with the mesh. Counts calls instead of measuring time. */
import { expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../../test/fixtures/given-world.ts';
import { countedWork, growthOfWork, sumOf } from '../../../../test/harness/counted-work.ts';
import type { Config } from '../../../model/config/config.ts';
import { routeType } from '../../index.ts';

const namespaces = 20;
const space = (index: number): string => `ns-${index % namespaces}`;
const host = (index: number): string => `svc-${index}.${space(index)}.svc.cluster.local`;

function service(index: number): Config {
  return givenObject('ServiceEntry', space(index), `s${index}`, {
    hosts: [host(index)],
    addresses: [`10.250.${index >> 8}.${index & 255}`],
    ports: [{ number: 8080, name: 'http', protocol: 'HTTP' }],
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    endpoints: [{ address: `10.1.${index >> 8}.${index & 255}` }],
  });
}

function route(index: number, timeoutMs: number): Config {
  const http = [{ timeoutMs, route: [{ destination: { host: host(index) } }] }];
  return givenObject('VirtualService', space(index), `v${index}`, { hosts: [host(index)], http });
}

/** Moves an object to a namespace without sidecars, so that no client uses its short names. */
const moveToUnusedNamespace = (object: Config): Config =>
  JSON.parse(JSON.stringify(object).replaceAll(/ns-\d+/g, 'lib')) as Config;

function rule(index: number): Config {
  const trafficPolicy = { loadBalancer: { consistentHash: { useSourceIp: true } } };
  return givenObject('DestinationRule', space(index), `d${index}`, { host: host(index), trafficPolicy });
}

/** Counts calls of route building functions for one changed object, with a sidecar in each namespace. */
function callsFor(
  services: number,
  changedRoute = route(7, 2),
  placeObject = (object: Config): Config => object,
  otherObjects: readonly Config[] = [],
): number {
  const all = Array.from({ length: services }, (_, index) => index);
  const world = new GivenWorld([
    ...all.flatMap((index) => [service(index), route(index, 1)]).map(placeObject),
    ...otherObjects,
  ]);
  const nodes = Array.from({ length: namespaces }, (_, index) =>
    world.connect(`10.9.0.${index}`, { namespace: `ns-${index}` }),
  );
  const readVersions = () => nodes.map((node) => node.get(routeType, ['8080'])!.resources.get('8080')!.version);
  const initialVersions = readVersions();
  const change = world.put(placeObject(changedRoute));
  const callCounts = countedWork(() => {
    for (const node of nodes) node.typesToPush(change, [routeType]);
    const finalVersions = readVersions();
    expect(finalVersions.filter((version, index) => version === initialVersions[index])).toEqual([]);
  });
  const routeCalls = [...callCounts].filter(([call]) => /src\/networking\/(routes|messages)\//.test(call));
  return sumOf(new Map(routeCalls));
}

it('a changed VirtualService is replaced in each namespace without checks of other virtual hosts', () => {
  const [fewCalls, manyCalls] = [callsFor(100), callsFor(800)];
  // Matching VirtualServices with hosts and counting blocks happens once for all namespaces, with less than one call per host.
  expect(manyCalls - fewCalls).toBeLessThan(namespaces * 700);
  expect(manyCalls / namespaces).toBeLessThan(1_200);
});

/** An alias of the first service, which may have its own routes. */
function externalName(index: number): Config {
  const annotations = { clusterIP: '', clusterIPs: [], ports: [], externalIPs: [], internalTrafficPolicy: 'Cluster' };
  const spec = { type: 'ExternalName', externalName: host(0), publishNotReadyAddresses: false, ...annotations };
  return givenObject('Service', 'ns-1', `alias-${index}`, { spec, status: { loadBalancer: { ingress: [] } } });
}

it('a changed VirtualService is replaced at the same cost if services have aliases', () => {
  const aliases = [0, 1, 2].map(externalName);
  const aliasService = givenObject('VirtualService', 'ns-1', 'of-alias', {
    hosts: ['alias-1.ns-1.svc.cluster.local'],
    http: [{ timeoutMs: 1, route: [{ destination: { host: host(3) } }] }],
  });
  const calls = (services: number) => callsFor(services, route(7, 2), undefined, [...aliases, aliasService]);
  expect(calls(800) - calls(100)).toBeLessThan(namespaces * 700);
});

const changes: Readonly<Record<string, (services: number) => Config>> = {
  'an added service': service,
  'a changed DestinationRule': () => rule(7),
};

it.each(Object.entries(changes))('%s is computed once, and other namespaces reuse the result', (_, buildChange) => {
  const [fewCalls, manyCalls] = [100, 800].map((services) =>
    callsFor(services, buildChange(services), moveToUnusedNamespace),
  ) as [number, number];
  // About forty calls per host in the first namespace, none in the others.
  expect(manyCalls - fewCalls).toBeLessThan(60 * 700);
});

/** Counts calls of route building functions for a sidecar in a namespace without services, after two equal sidecars. */
function callsToTakeOver(services: number): number {
  const all = Array.from({ length: services }, (_, index) => index);
  const world = new GivenWorld(all.flatMap((index) => [service(index), route(index, 1)]));
  const readRoutes = (namespace: string) =>
    world.connect('10.9.1.1', { namespace }).get(routeType, ['8080'])!.resources;
  const [first, second] = [readRoutes('empty-1'), readRoutes('empty-2')];
  expect(second.get('8080')!.version).toBe(first.get('8080')!.version);
  return sumOf(
    new Map([...countedWork(() => readRoutes('empty-3'))].filter(([call]) => call.includes('networking/routes/'))),
  );
}

it('a namespace with the same routes as another checks no virtual hosts', () => {
  const [fewCalls, manyCalls] = [callsToTakeOver(100), callsToTakeOver(800)];
  expect(manyCalls - fewCalls).toBeLessThan(20);
});

/** A service and a VirtualService: the VirtualService's wildcard covers the service, or a wildcard service covers the VirtualService's host. */
const wildcards: Readonly<Record<string, (index: number) => readonly [service: string, rule: string]>> = {
  'VirtualServices for wildcards': (index) => [`a.d${index}.test`, `*.d${index}.test`],
  'hosts within wildcard services': (index) => [`*.d${index}.test`, `a.d${index}.test`],
};

it.each(Object.entries(wildcards))('%s are not compared with every service', (_, pairOf) => {
  const work = (size: number) => {
    const objects = Array.from({ length: size }, (__, index) => {
      const [namedHost, ruled] = pairOf(index);
      const ports = [{ number: 8080, name: 'http', protocol: 'HTTP' }];
      const http = [{ route: [{ destination: { host: namedHost } }] }];
      return [
        givenObject('ServiceEntry', 'a', `s${index}`, { hosts: [namedHost], ports, resolution: 'NONE', endpoints: [] }),
        givenObject('VirtualService', 'a', `v${index}`, { hosts: [ruled], http }),
      ];
    });
    const node = new GivenWorld(objects.flat()).connect('10.9.0.1');
    return countedWork(() => expect(node.get(routeType, ['8080'])!.resources.size).toBe(1));
  };
  const { exponent, tooFast } = growthOfWork(work, 50, 200);
  expect(tooFast).toEqual([]);
  expect(exponent).toBeLessThan(1.2);
});
