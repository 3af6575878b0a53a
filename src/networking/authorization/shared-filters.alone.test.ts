/** Tests that filters which depend only on policies are built once for all workloads. Counts calls instead of measuring time. */
import { expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import { countedWork, sumOf } from '../../../test/harness/counted-work.ts';
import type { Config } from '../../model/config/config.ts';
import { listenerType } from '../index.ts';

const times = <T>(size: number, build: (index: number) => T): T[] =>
  Array.from({ length: size }, (_, index) => build(index));

function policy(index: number, path = '/', namespace = 'istio-system'): Config {
  const rules = [{ to: [{ paths: [path] }], from: [{ principals: [`sa-${index}`] }] }];
  return givenObject('AuthorizationPolicy', namespace, `p${index}`, { action: index % 2 ? 'DENY' : 'ALLOW', rules });
}

/** A service with an HTTP and a TCP port. */
const service = (index: number): Config =>
  givenObject('ServiceEntry', `ns-${index}`, `s${index}`, {
    hosts: [`s${index}.test`],
    ports: [{ number: 8080, name: 'p', protocol: index % 2 ? 'HTTP' : 'TCP' }],
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    endpoints: [{ address: `10.9.0.${index}` }],
  });

/** Number of calls that build rules for one workload in each namespace: initially, and after a change. */
function callsFor(namespaces: number, changedPolicy: Config): readonly number[] {
  const world = new GivenWorld([...times(20, (index) => policy(index)), ...times(namespaces, service)]);
  const nodes = times(namespaces, (index) => world.connect(`10.9.0.${index}`, { namespace: `ns-${index}` }));
  const readVersions = () => nodes.map((node) => node.get(listenerType, '*')!.resources.get('virtualInbound')!.version);
  const authorizationCalls = (work: () => void) =>
    sumOf(new Map([...countedWork(work)].filter(([call]) => /src\/networking\/authorization\//.test(call))));
  const initialVersions: string[] = [];
  const first = authorizationCalls(() => initialVersions.push(...readVersions()));
  const change = world.put(changedPolicy);
  const secondPassCalls = authorizationCalls(() => {
    const affectedNodes = nodes.map((node) => node.typesToPush(change, [listenerType]).length > 0);
    expect(readVersions().map((version, index) => version !== initialVersions[index])).toEqual(affectedNodes);
    expect(affectedNodes).toContain(true);
  });
  return [first, secondPassCalls];
}

it('filters for mesh-wide policies are built once for all workloads, separately for HTTP and TCP', () => {
  const [fewCalls, manyCalls] = [callsFor(4, policy(3, '/other')), callsFor(40, policy(3, '/other'))];
  // Each workload checks its policies for external authorizers, which costs a few calls. No call builds rules.
  for (const [index, calls] of manyCalls.entries()) expect(calls).toBeLessThan(fewCalls[index]! + 36 * 20 * 8);
});

it("a namespace's changed policy changes only the filters of its workloads", () => {
  callsFor(4, policy(21, '/own', 'ns-1'));
});
