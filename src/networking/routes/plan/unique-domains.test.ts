/**
 * Envoy rejects a route configuration with a duplicate domain, regardless of case, so one such object would block all updates. The tests use random
 * meshes, and two tenants with different spellings of a host.
 */
import { expect, it } from 'vitest';
import { stringify } from 'yaml';
import { givenMesh, givenShape } from '../../../../test/fixtures/given-mesh.ts';
import { meshOfObjects } from '../../../../test/fixtures/written-objects.ts';
import { sized } from '../../../../test/harness/size-of-run.ts';
import { randomConfiguration } from '../../../../test/random-config/configuration.ts';
import type { WrittenObject } from '../../../../test/random-config/values.ts';
import type { RouteConfiguration } from '../../../gen/envoy/config/route/v3/route_pb.ts';
import { readConfigFile } from '../../../model/config/config-file.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import { mergeGateways } from '../../gateway/merge-gateways.ts';
import { buildRoutes } from '../build.ts';

const isValid = (object: WrittenObject): boolean =>
  !readConfigFile('a.yaml', stringify(object), { creationTimestamp: 0 }).problems.some(
    ({ severity }) => severity === 'error',
  );

const documents = (objects: readonly object[]): string => objects.map((object) => stringify(object)).join('---\n');

/** Returns the domains of each route configuration of a sidecar, and of a gateway that all Gateway objects select. */
function domains(context: PushContext, ports: readonly number[]): string[][] {
  const edge = givenShape({ type: 'router', namespace: 'shop', labels: { istio: 'edge' } }, context);
  const sidecar = givenShape({ namespace: 'shop' }, context);
  const resources = [
    ...buildRoutes(edge, context, [...mergeGateways(edge, context).routes.keys()]),
    ...buildRoutes(sidecar, context, ports.map(String)),
  ];
  return resources.map(({ message }) =>
    (message as RouteConfiguration).virtualHosts.flatMap((host) => host.domains.map((domain) => domain.toLowerCase())),
  );
}

const duplicatesOf = (names: readonly string[]): string[] =>
  names.filter((name, index) => names.indexOf(name) !== index);

it('a domain never occurs twice in a random mesh', () => {
  const seeds = sized({ quick: 60, short: 100, full: 2_000 });
  let [maxDomains, capitals] = [0, 0];
  for (let seed = 0; seed < seeds; seed++) {
    const text = documents(randomConfiguration(seed, meshOfObjects).filter(isValid));
    if (/(hosts?|sniHosts): *\n? *-? *[^\s:]*[A-Z]/.test(text)) capitals++;
    for (const names of domains(givenMesh(text).context, meshOfObjects.servicePorts)) {
      maxDomains = Math.max(maxDomains, names.length);
      expect([seed, duplicatesOf(names)]).toEqual([seed, []]);
    }
  }
  // Ensures that the random meshes contain relevant cases.
  expect(maxDomains).toBeGreaterThan(10);
  expect(capitals).toBeGreaterThan(seeds / 10);
});

const of = (kind: string, namespace: string, spec: object): object => ({
  ...{ apiVersion: 'networking.istio.io/v1', kind },
  metadata: { name: 'a', namespace },
  spec,
});

it('two tenants with different spellings of a host share one virtual host in gateways and sidecars', () => {
  const route = { destination: { host: 'Shop.Example.com' } };
  const mesh = ['shop', 'bank'].flatMap((namespace) => {
    const hosts = [namespace === 'shop' ? 'Shop.example.com' : 'shop.Example.com'];
    const ports = [{ number: 80, name: 'http', protocol: 'HTTP' }];
    return [
      of('ServiceEntry', namespace, { hosts, ports, resolution: 'NONE' }),
      of('VirtualService', namespace, { hosts, gateways: ['mesh', 'edge/a'], http: [{ route: [route] }] }),
    ];
  });
  const server = { port: { number: 80, name: 'http', protocol: 'HTTP' }, hosts: ['*.Example.COM'] };
  const { context } = givenMesh(documents([...mesh, of('Gateway', 'edge', { selector: {}, servers: [server] })]));
  expect(domains(context, [80]).map((names) => names.filter((name) => name === 'shop.example.com'))).toEqual([
    ['shop.example.com'],
    ['shop.example.com'],
  ]);
});
