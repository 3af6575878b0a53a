import { expect, it } from 'vitest';
import { type GivenFilter, nodes, PatchedMesh } from '../../../test/fixtures/given-patches.ts';
import { type CountedWork, countedWork } from '../../../test/harness/counted-work.ts';

const services = Array.from({ length: 50 }, (_, i) => `s${i}.test`);
const entry = `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: many, namespace: shop }
spec: { hosts: [${services.join(', ')}], ports: [{number: 80, name: http}], resolution: DNS }`;

function workOf(kind: 'clusters' | 'listeners', filter: GivenFilter): CountedWork {
  const mesh = new PatchedMesh(filter, entry);
  return countedWork(() => mesh.json(kind, nodes.client));
}

const callsOf = (work: CountedWork, name: string): number =>
  [...work].reduce((sum, [call, count]) => sum + (call.startsWith(`${name} `) ? count : 0), 0);

it('a cluster is compared only with patches that can match its name', () => {
  const timeouts = (count: number): GivenFilter => ({
    patches: Array.from(
      { length: count },
      (_, i) =>
        `{applyTo: CLUSTER, match: {cluster: {service: nope-${i}}}, patch: {operation: MERGE, value: {connect_timeout: 7s}}}`,
    ),
  });
  const [fewCalls, manyCalls] = [10, 200].map((count) => workOf('clusters', timeouts(count)));
  expect(callsOf(manyCalls!, 'matchesPatch') - callsOf(fewCalls!, 'matchesPatch')).toBe(0);
  expect(callsOf(manyCalls!, 'parseOutboundClusterName')).toBe(callsOf(fewCalls!, 'parseOutboundClusterName'));
});

it('inserting filters has a linear cost in the length of the list', () => {
  const inserted = (count: number): GivenFilter => ({
    patches: Array.from({ length: count }, (_, i) => {
      const lua = `{name: f${i}, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua}}`;
      return `{applyTo: HTTP_FILTER, match: {context: SIDECAR_OUTBOUND}, patch: {operation: INSERT_FIRST, value: ${lua}}}`;
    }),
  });
  const [fewCalls, manyCalls] = [20, 200].map((count) => {
    const work = workOf('listeners', inserted(count));
    return [...work].reduce((sum, [, times]) => sum + times, 0);
  });
  // There are ten times as many filters. The exponent would be two if each patch searched the filter list.
  expect(manyCalls! / fewCalls!).toBeLessThan(15);
});
