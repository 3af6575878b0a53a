/**
 * Clusters that generated resources refer to, as read from encoded bytes, are those in the JSON form
 * (src/networking/references/).
 */
import type { JsonValue } from '@bufbuild/protobuf';
import { describe, expect, test } from 'vitest';
import { encodeGenerated } from '../../src/discovery/push/cache/encode-generated.ts';
import { resourceReferences } from '../../src/discovery/push/resource-references.ts';
import type { EnvoyResource } from '../../src/networking/index.ts';
import { asJson, caseNames, generate, readCase } from './case.ts';

/** JSON keys of cluster names. */
const keys = ['cluster', 'clusterName', 'collectorCluster'];

function namedIn(json: JsonValue, inWeighted = false): string[] {
  if (typeof json !== 'object' || json === null) return [];
  // Conditions and metadata also contain these keys.
  const type = Array.isArray(json) ? undefined : json['@type'];
  if (typeof type === 'string' && /RBAC|TypedStruct/.test(type)) return [];
  return Object.entries(json).flatMap(([key, value]) => {
    if (key === 'filterMetadata') return [];
    if (typeof value === 'string') return keys.includes(key) || (inWeighted && key === 'name') ? [value] : [];
    return namedIn(value, key === 'weightedClusters' || (inWeighted && (key === 'clusters' || Array.isArray(json))));
  });
}

describe('clusters to which a listener, route or extension refers', () => {
  test.each(caseNames())('are found in the case %s', (name) => {
    const { clusters, listeners, routes, extensions } = generate(readCase(name));
    const candidates = [...new Set(clusters.map((cluster) => cluster.name))];
    for (const resource of [...listeners, ...routes, ...extensions]) {
      const namedClusters = new Set(namedIn(asJson(resource)));
      const encodedResource = encodeGenerated(resource);
      const all = [...new Set([...candidates, ...namedClusters])];
      const foundClusters = all.filter((cluster) => resourceReferences.names(encodedResource, cluster));
      expect(foundClusters.sort(), resource.name).toEqual([...namedClusters].sort());
    }
  });
});

test('cluster references are found in all types of resources', () => {
  const countNamed = (resources: readonly EnvoyResource[]): number =>
    resources.flatMap((one) => namedIn(asJson(one))).length;
  const cases = caseNames().map((name) => generate(readCase(name)));
  expect(cases.filter(({ routes }) => countNamed(routes) > 0).length).toBeGreaterThan(10);
  expect(cases.filter(({ listeners }) => countNamed(listeners) > 0).length).toBeGreaterThan(10);
});
