import { describe, expect, it } from 'vitest';
import { givenShape } from '../../../test/fixtures/given-mesh.ts';
import { type GivenFilter, nodes, PatchedMesh } from '../../../test/fixtures/given-patches.ts';
import type { PatchTarget } from '../../model/kinds/envoy-filter/envoy-filter.ts';
import { routeProjection } from '../projection.ts';
import { patchSetOf } from './patch-set.ts';

const header = '{response_headers_to_add: [{header: {key: x, value: y}}]}';
const teamFilter: GivenFilter = {
  patches: [
    `{applyTo: VIRTUAL_HOST, match: {proxy: {metadata: {TEAM: blue}}}, patch: {operation: MERGE, value: ${header}}}`,
  ],
};
const [blue, red] = ['blue', 'red'].map((TEAM) => ({ ...nodes.client, metadata: { TEAM } })) as [object, object];

describe('proxies with different metadata', () => {
  const patchedMesh = new PatchedMesh(teamFilter);
  const { context } = patchedMesh.mesh;

  it('proxies receive the patches that match their metadata', () => {
    const text = (node: object) => JSON.stringify(patchedMesh.json('routes', node));
    expect([blue, red, blue].map((node) => text(node).includes('responseHeadersToAdd'))).toEqual([true, false, true]);
  });

  it('proxies share a list of routes only if the metadata that patches match on is equal', () => {
    const projections = [blue, red, blue].map((node) => routeProjection(givenShape(node, context), context));
    expect(projections[0]).not.toBe(projections[1]);
    expect(projections[0]).toBe(projections[2]);
  });
});

describe('patch set', () => {
  const { context } = new PatchedMesh({ patches: ['{applyTo: CLUSTER, patch: {operation: REMOVE}}'] }).mesh;

  it('proxies with the same patches share one set, regardless of other differences', () => {
    const policy = `
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: { name: closed, namespace: shop }
spec: { selector: { matchLabels: { app: closed } } }`;
    const { context: extendedContext } = new PatchedMesh(
      { patches: ['{applyTo: CLUSTER, patch: {operation: REMOVE}}'] },
      policy,
    ).mesh;
    const setOf = (app: string) =>
      patchSetOf(givenShape({ namespace: 'shop', labels: { app } }, extendedContext), extendedContext);
    expect(setOf('closed')).toBe(setOf('open'));
    expect(setOf('open')).toBeDefined();
  });

  it('proxies of another type or with other objects have another set', () => {
    const sets = [nodes.client, nodes.door].map((node) => patchSetOf(givenShape(node, context), context));
    const { context: other } = new PatchedMesh({ patches: ['{applyTo: CLUSTER, patch: {operation: REMOVE}}'] }).mesh;
    expect(new Set([...sets, patchSetOf(givenShape(nodes.client, other), other)]).size).toBe(3);
  });

  // A record, so that a new target without an entry is a compile error.
  const operations: Readonly<Record<PatchTarget, readonly string[]>> = {
    LISTENER: ['MERGE', 'ADD', 'REMOVE'],
    FILTER_CHAIN: ['MERGE', 'ADD', 'REMOVE'],
    LISTENER_FILTER: ['ADD', 'REMOVE', 'INSERT_FIRST', 'INSERT_BEFORE', 'INSERT_AFTER', 'REPLACE'],
    NETWORK_FILTER: ['MERGE', 'ADD', 'REMOVE', 'INSERT_FIRST', 'INSERT_BEFORE', 'INSERT_AFTER', 'REPLACE'],
    HTTP_FILTER: ['MERGE', 'ADD', 'REMOVE', 'INSERT_FIRST', 'INSERT_BEFORE', 'INSERT_AFTER', 'REPLACE'],
    ROUTE_CONFIGURATION: ['MERGE'],
    VIRTUAL_HOST: ['MERGE', 'ADD', 'REMOVE'],
    HTTP_ROUTE: ['MERGE', 'ADD', 'REMOVE', 'INSERT_FIRST', 'INSERT_BEFORE', 'INSERT_AFTER'],
    CLUSTER: ['MERGE', 'ADD', 'REMOVE'],
    EXTENSION_CONFIG: ['ADD'],
    BOOTSTRAP: ['MERGE'],
  };

  it.each(
    Object.entries(operations).flatMap(([target, list]) =>
      list.map((operation) => [target as PatchTarget, operation] as const),
    ),
  )(
    "patches with target %s and operation %s apply by priority across the root and the proxy's namespace",
    (target, operation) => {
      const patch = (name: string): string =>
        `{applyTo: ${target}, match: ${matchOf(target)}, patch: {operation: ${operation}${operation === 'REMOVE' ? '' : `, value: {name: ${name}}`}}}`;
      const filter = (name: string, namespace: string, priority: number): GivenFilter => ({
        ...{ name, namespace, priority, patches: [patch(name)] },
      });
      const { context: orderedContext } = new PatchedMesh(
        filter('last', 'istio-system', 2),
        filter('second', 'istio-system', -1),
        filter('third', 'shop', 1),
        filter('first', 'shop', -5),
      ).mesh;
      const set = patchSetOf(givenShape(nodes.client, orderedContext), orderedContext);
      expect(set?.takePatches(target).map((appliedPatch) => appliedPatch.filter.name)).toEqual([
        'first',
        'second',
        'third',
        'last',
      ]);
    },
  );

  it('proxies without patches have no set', () => {
    expect(patchSetOf(givenShape({ namespace: 'other' }, context), context)).toBeUndefined();
  });
});

/** Returns a match that is valid for every operation on the target. */
function matchOf(target: PatchTarget): string {
  const namedMatches: Partial<Record<PatchTarget, string>> = {
    LISTENER_FILTER: '{listener: {listenerFilter: some}}',
    NETWORK_FILTER: '{listener: {filterChain: {filter: {name: some}}}}',
    HTTP_FILTER: '{listener: {filterChain: {filter: {name: some, subFilter: {name: other}}}}}',
    HTTP_ROUTE: '{routeConfiguration: {vhost: {name: some, route: {name: other}}}}',
  };
  return namedMatches[target] ?? '{context: ANY}';
}
