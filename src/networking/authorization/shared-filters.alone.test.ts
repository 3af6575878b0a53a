/** Policies that hold for many are made into filters once: counted, not timed. */
import { expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import { countedWork, sumOf } from '../../../test/harness/counted-work.ts';
import type { Config } from '../../model/config/config.ts';
import { listenerType } from '../index.ts';

const times = <T>(size: number, make: (index: number) => T): T[] =>
  Array.from({ length: size }, (_, index) => make(index));

function policy(index: number, path = '/', namespace = 'istio-system'): Config {
  const rules = [{ to: [{ paths: [path] }], from: [{ principals: [`sa-${index}`] }] }];
  return givenObject('AuthorizationPolicy', namespace, `p${index}`, { action: index % 2 ? 'DENY' : 'ALLOW', rules });
}

/** Carries requests, or bytes. */
const service = (index: number): Config =>
  givenObject('ServiceEntry', `ns-${index}`, `s${index}`, {
    hosts: [`s${index}.test`],
    ports: [{ number: 8080, name: 'p', protocol: index % 2 ? 'HTTP' : 'TCP' }],
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    endpoints: [{ address: `10.9.0.${index}` }],
  });

/** A workload that serves in each namespace; calls of what makes the rules, at first and when one changes. */
function callsFor(namespaces: number, changed: Config): readonly number[] {
  const world = new GivenWorld([...times(20, (index) => policy(index)), ...times(namespaces, service)]);
  const nodes = times(namespaces, (index) => world.connect(`10.9.0.${index}`, { namespace: `ns-${index}` }));
  const take = () => nodes.map((node) => node.get(listenerType, '*')!.resources.get('virtualInbound')!.version);
  const counted = (work: () => void) =>
    sumOf(new Map([...countedWork(work)].filter(([what]) => /src\/networking\/authorization\//.test(what))));
  const before: string[] = [];
  const first = counted(() => before.push(...take()));
  const change = world.put(changed);
  const second = counted(() => {
    const concerned = nodes.map((node) => node.typesToPush(change, [listenerType]).length > 0);
    expect(take().map((version, index) => version !== before[index])).toEqual(concerned);
    expect(concerned).toContain(true);
  });
  return [first, second];
}

it('those of the mesh once for all workloads, for requests and for bytes', () => {
  const [few, many] = [callsFor(4, policy(3, '/other')), callsFor(40, policy(3, '/other'))];
  // A few looks at each policy in each workload (whether somebody else is to be asked), and none of what makes rules.
  for (const [place, calls] of many.entries()) expect(calls).toBeLessThan(few[place]! + 36 * 20 * 8);
});

it('a policy of a namespace is in the filters of its workloads, and of nobody else', () => {
  callsFor(4, policy(21, '/own', 'ns-1'));
});
