/** Tests that the cost of TCP and TLS routes per service does not grow with the mesh. Counts calls instead of measuring time. */
import { expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import { countedWork, growthOfWork } from '../../../test/harness/counted-work.ts';
import type { Config } from '../../model/config/config.ts';
import { listenerType } from '../index.ts';

const [smallCount, largeCount] = [50, 200];
/** Maximum growth exponent of the number of calls. */
const maxExponent = 1.2;

const host = (index: number): string => `s${index}.test`;
const to = (index: number): object => ({ route: [{ destination: { host: host(index) } }] });

/** A service, and a VirtualService that routes its connections. */
type Pair = (index: number) => readonly Config[];

const serviceOf = (index: number, port: object, extraSpec: object): Config =>
  givenObject('ServiceEntry', 'a', `s${index}`, {
    hosts: [host(index)],
    ports: [port],
    location: 'MESH_EXTERNAL',
    resolution: 'STATIC',
    endpoints: [{ address: `10.1.${index >> 8}.${index & 255}` }],
    ...extraSpec,
  });
const rulesOf = (index: number, hosts: readonly string[], routes: object): Config =>
  givenObject('VirtualService', 'a', `v${index}`, { hosts, ...routes });

const meshes: Readonly<Record<string, Pair>> = {
  'TCP services with separate addresses': (index) => [
    serviceOf(
      index,
      { number: 9000, name: 'tcp', protocol: 'TCP' },
      { addresses: [`10.5.${index >> 8}.${index & 255}`] },
    ),
    rulesOf(index, [host(index)], { tcp: [to(index)] }),
  ],
  'TLS services matched by SNI, including wildcards': (index) => [
    serviceOf(index, { number: 443, name: 'tls', protocol: 'TLS' }, {}),
    rulesOf(index, [host(index), `*.s${index}.test`], {
      tls: [{ match: [{ sniHosts: [host(index)] }], ...to(index) }],
    }),
  ],
};

it.each(Object.entries(meshes))('the cost of listeners grows linearly with %s', (_, pairOf) => {
  const work = (size: number) => {
    const world = new GivenWorld(Array.from({ length: size }, (__, index) => pairOf(index)).flat());
    const node = world.connect('10.9.0.1');
    return countedWork(() => expect(node.get(listenerType, '*')!.resources.size).toBeGreaterThan(0));
  };
  const { exponent, tooFast } = growthOfWork(work, smallCount, largeCount);
  expect(tooFast).toEqual([]);
  expect(exponent).toBeLessThan(maxExponent);
});
