import { expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../../test/fixtures/given-mesh.ts';
import { givenPlane } from '../../../../test/fixtures/given-plane.ts';
import { threadCpuMs } from '../../../../test/harness/cpu-time.ts';
import { maxServiceClusters, maxSubsets, maxWildcardSubsets } from '../../../model/kinds/object-limits.ts';
import { buildClusters } from '../../../networking/clusters/build.ts';
import { diagnosticsOf } from './push-status.ts';

const listOf = <T>(length: number, build: (index: number) => T): T[] =>
  Array.from({ length }, (_, index) => build(index));

const objectText = (kind: string, name: string, spec: object): string =>
  `${JSON.stringify({ apiVersion: 'networking.istio.io/v1', kind, metadata: { name, namespace: 'mallory' }, spec })}\n---\n`;

const entry = (ports: number): string =>
  objectText('ServiceEntry', 'a', {
    hosts: ['a.test'],
    ports: listOf(ports, (index) => ({ number: 80 + index, name: `p${index}`, protocol: 'HTTP' })),
    resolution: 'STATIC',
    endpoints: [{ address: '10.0.0.1' }],
  });

const rules = (count: number, subsets: number, host = 'a.test'): string =>
  listOf(count, (rule) =>
    objectText('DestinationRule', `d${String(rule).padStart(2, '0')}`, {
      host,
      subsets: listOf(subsets, (index) => ({ name: `s${rule}-${index}`, labels: { v: `${index}` } })),
    }),
  ).join('');

/** Clusters of a client in another namespace, and the diagnostics. */
function built(yaml: string): { clusters: string[]; status: Record<string, string>; ms: number } {
  const plane = givenPlane(yaml);
  const id = 'sidecar~10.9.0.1~b.zoo~zoo.svc.cluster.local';
  plane.connect({ id, cluster: '', metadata: { NAMESPACE: 'zoo' } }, []);
  const start = threadCpuMs();
  const { context } = givenMesh(yaml);
  const names = buildClusters(givenShape({ namespace: 'zoo' }), context).map(({ name }) => name);
  const ms = threadCpuMs() - start;
  const beyondLimit = diagnosticsOf(plane.state, plane.resources.nodes).pilot_destrule_subsets_beyond_limit ?? {};
  const status = Object.fromEntries(Object.entries(beyondLimit).map(([key, { message }]) => [key, message]));
  return { clusters: names.filter((name) => name.endsWith('|a.test')), status, ms };
}

it('a service with many ports and subsets gets a limited number of clusters, at least one for each port', () => {
  const { clusters, status, ms } = built(entry(256) + rules(1, 500));
  expect(clusters).toHaveLength(maxServiceClusters);
  expect(clusters.filter((name) => name.includes('||'))).toHaveLength(256);
  expect(status).toEqual({
    'a.test': expect.stringContaining('485 of 500 subsets of DestinationRule/mallory/d00 get no'),
  });
  expect(ms).toBeLessThan(1_000);
});

it('rules for the same host are merged up to the subset limit of a single rule, oldest first', () => {
  const { clusters, status, ms } = built(entry(4) + rules(39, 500));
  expect(clusters).toHaveLength(4 * (maxSubsets + 1));
  expect(clusters).toContain('outbound|80|s1-11|a.test');
  expect(clusters).not.toContain('outbound|80|s1-12|a.test');
  expect(status).toEqual({
    'a.test': expect.stringMatching(/^18988 of 19500 subsets .*DestinationRule\/mallory\/d02 get no/),
  });
  expect(ms).toBeLessThan(1_000);
});

it('rules for a wildcard host are merged up to the subset limit of a single rule', () => {
  const { clusters } = built(entry(1) + rules(10, maxWildcardSubsets, '*.test'));
  expect(clusters).toHaveLength(1 + maxWildcardSubsets);
});

it('subset diagnostics are empty if every subset has clusters', () => {
  const { clusters, status } = built(entry(3) + rules(4, 100));
  expect(clusters).toHaveLength(3 * 401);
  expect(status).toEqual({});
});
