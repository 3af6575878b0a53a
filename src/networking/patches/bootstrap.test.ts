import { toJson } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { givenShape } from '../../../test/fixtures/given-mesh.ts';
import { type GivenFilter, nodes, PatchedMesh } from '../../../test/fixtures/given-patches.ts';
import { envoyApi } from '../../model/envoy-api/envoy-api.ts';
import { buildBootstrapPatches } from './bootstrap.ts';

function patchBootstrap(...filters: readonly GivenFilter[]) {
  const patchedMesh = new PatchedMesh(...filters);
  const { context } = patchedMesh.mesh;
  const resources = (node: keyof typeof nodes, names = ['patches']) =>
    buildBootstrapPatches(givenShape(nodes[node], context), context, names);
  const patches = (node: keyof typeof nodes) => {
    const [{ schema, message }] = resources(node) as [ReturnType<typeof resources>[number]];
    return toJson(schema, message, { registry: envoyApi() });
  };
  return { patched: patchedMesh, resources, patches };
}

const merge = (value: string, match = '', operation = 'MERGE'): string =>
  `{applyTo: BOOTSTRAP, match: {context: ANY${match}}, patch: {operation: ${operation}, value: ${value}}}`;

it('bootstrap patches are merged in order: later ones override, lists append, and messages merge (§8.9 BOOTSTRAP)', () => {
  const { patches } = patchBootstrap(
    { patches: [merge('{admin: {profile_path: /a}, stats_flush_interval: 5s, stats_sinks: [{name: one}]}')] },
    {
      patches: [
        merge('{stats_flush_interval: 7s, stats_sinks: [{name: two}], admin: {ignore_global_conn_limit: true}}'),
      ],
    },
  );
  expect(patches('client')).toEqual({
    admin: { profilePath: '/a', ignoreGlobalConnLimit: true },
    statsFlushInterval: '7s',
    statsSinks: [{ name: 'one' }, { name: 'two' }],
  });
});

it('bootstrap patches are merged only if they apply to the proxy (§8.9 BOOTSTRAP)', () => {
  const { patches } = patchBootstrap({
    patches: [
      '{applyTo: BOOTSTRAP, match: {context: GATEWAY}, patch: {operation: MERGE, value: {stats_flush_interval: 3s}}}',
      merge('{flags_path: /x}', ', proxy: {proxyVersion: "^nobody"}'),
    ],
  });
  expect(patches('client')).toEqual({});
  expect(patches('door')).toEqual({ statsFlushInterval: '3s' });
});

it('a client without bootstrap patches receives no resources', () => {
  const { patches, resources } = patchBootstrap();
  expect(patches('client')).toEqual({});
  expect(resources('client', [])).toEqual([]);
  expect(resources('client', ['other'])).toEqual([]);
});

it('a bootstrap patch that cannot be applied is omitted and reported, and all others apply (§8.9 BOOTSTRAP)', () => {
  const { patches, patched } = patchBootstrap({
    patches: [
      merge('{stats_sinks: [{name: one}]}', '', 'MERGE_AND_REPLACE_LIST'),
      merge('{admin: {access_log_path: /dev/null}}'),
    ],
  });
  expect(patches('client')).toEqual({ admin: { accessLogPath: '/dev/null' } });
  expect(patched.problems()).toEqual(['operation must be MERGE in a bootstrap, got MERGE_AND_REPLACE_LIST', undefined]);
});
