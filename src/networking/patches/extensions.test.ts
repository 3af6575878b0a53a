import { describe, expect, it } from 'vitest';
import { givenShape } from '../../../test/fixtures/given-mesh.ts';
import { type GivenFilter, nodes, PatchedMesh } from '../../../test/fixtures/given-patches.ts';
import { buildExtensions } from '../index.ts';

const add = (name: string, context = 'ANY'): string =>
  `{applyTo: EXTENSION_CONFIG, match: {context: ${context}}, patch: {operation: ADD, value: {name: ${name}, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua}}}}`;

function namesFor(node: keyof typeof nodes, requested: readonly string[], ...filters: readonly GivenFilter[]) {
  const { mesh } = new PatchedMesh(...filters);
  return buildExtensions(givenShape(nodes[node], mesh.context), mesh.context, requested).map(({ name }) => name);
}

describe('added extension configurations', () => {
  it('an added extension is sent to clients that request its name', () => {
    const filter = { patches: [add('a'), add('b', 'GATEWAY')] };
    expect(namesFor('client', ['a', 'b', 'c'], filter)).toEqual(['a']);
    expect(namesFor('door', ['a', 'b', 'c'], filter)).toEqual(['a', 'b']);
    expect(namesFor('door', ['b'], filter)).toEqual(['b']);
    expect(namesFor('client', ['a'])).toEqual([]);
  });

  it('an extension is not added if its name exists, and the failure is reported', () => {
    const patchedMesh = new PatchedMesh({ patches: [add('a'), add('a')] });
    const { context } = patchedMesh.mesh;
    expect(buildExtensions(givenShape(nodes.client, context), context, ['a'])).toHaveLength(1);
    expect(patchedMesh.problems()).toEqual([undefined, 'there is already an extension a']);
  });
});
