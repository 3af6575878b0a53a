import { describe, expect, it } from 'vitest';
import { givenShape } from '../../../test/fixtures/given-mesh.ts';
import { type GivenFilter, nodes, PatchedMesh } from '../../../test/fixtures/given-patches.ts';
import { routeProjection } from '../projection.ts';
import { patchSetOf } from './patch-set.ts';

const header = '{response_headers_to_add: [{header: {key: x, value: y}}]}';
const ofTeam: GivenFilter = {
  patches: [
    `{applyTo: VIRTUAL_HOST, match: {proxy: {metadata: {TEAM: blue}}}, patch: {operation: MERGE, value: ${header}}}`,
  ],
};
const [blue, red] = ['blue', 'red'].map((TEAM) => ({ ...nodes.client, metadata: { TEAM } })) as [object, object];

describe('proxies that only their metadata tells apart', () => {
  const patched = new PatchedMesh(ofTeam);
  const { context } = patched.mesh;

  it('get what is patched for them', () => {
    const text = (node: object) => JSON.stringify(patched.json('routes', node));
    expect([blue, red, blue].map((node) => text(node).includes('responseHeadersToAdd'))).toEqual([true, false, true]);
  });

  it('share no list of routes', () => {
    const projections = [blue, red, blue].map((node) => routeProjection(givenShape(node, context), context));
    expect(projections[0]).not.toBe(projections[1]);
    expect(projections[0]).toBe(projections[2]);
  });
});

describe('a set of patches', () => {
  const { context } = new PatchedMesh({ patches: ['{applyTo: CLUSTER, patch: {operation: REMOVE}}'] }).mesh;

  it('is one for all whom nothing tells apart, whatever else holds for them', () => {
    const policy = `
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: { name: closed, namespace: shop }
spec: { selector: { matchLabels: { app: closed } } }`;
    const { context: more } = new PatchedMesh({ patches: ['{applyTo: CLUSTER, patch: {operation: REMOVE}}'] }, policy)
      .mesh;
    const setOf = (app: string) => patchSetOf(givenShape({ namespace: 'shop', labels: { app } }, more), more);
    expect(setOf('closed')).toBe(setOf('open'));
    expect(setOf('open')).toBeDefined();
  });

  it('is another for another kind of proxy, and for other objects', () => {
    const sets = [nodes.client, nodes.door].map((node) => patchSetOf(givenShape(node, context), context));
    const { context: other } = new PatchedMesh({ patches: ['{applyTo: CLUSTER, patch: {operation: REMOVE}}'] }).mesh;
    expect(new Set([...sets, patchSetOf(givenShape(nodes.client, other), other)]).size).toBe(3);
  });

  it('is none where nothing is patched', () => {
    expect(patchSetOf(givenShape({ namespace: 'other' }, context), context)).toBeUndefined();
  });
});
