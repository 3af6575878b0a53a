import { describe, expect, it } from 'vitest';
import { givenShape } from '../../../test/fixtures/given-mesh.ts';
import { nodes, PatchedMesh } from '../../../test/fixtures/given-patches.ts';
import type { EnvoyPatch } from '../../model/kinds/envoy-filter/envoy-filter.ts';
import { patchStatus } from '../index.ts';
import { patchSetOf } from './patch-set.ts';
import { withoutWasm } from './without-wasm.ts';

const type = (name: string): string => `type.googleapis.com/envoy.extensions.${name}`;
const httpWasm = type('filters.http.wasm.v3.Wasm');
const vm = { runtime: 'envoy.wasm.runtime.v8', code: { local: { filename: '/a.wasm' } } };

function patchOf(value: Readonly<Record<string, unknown>>): EnvoyPatch {
  return { applyTo: 'HTTP_FILTER', operation: 'INSERT_FIRST', match: { context: 'ANY' }, value };
}

function valueWithout(value: Readonly<Record<string, unknown>>): unknown {
  return withoutWasm(patchOf(value)).patch?.value;
}

const denies = { '@type': type('filters.http.rbac.v3.RBAC'), rules: {} };
const passes = { '@type': type('filters.http.rbac.v3.RBAC') };

describe('patches for an Envoy that cannot run Wasm code', () => {
  it.each([
    ['closed by default', {}, denies],
    ['closed with failure_policy FAIL_RELOAD', { failure_policy: 'FAIL_RELOAD' }, denies],
    ['open with fail_open', { fail_open: true }, passes],
    ['open with failure_policy FAIL_OPEN', { failure_policy: 'FAIL_OPEN' }, passes],
    ['open with failurePolicy 3', { failurePolicy: 3 }, passes],
  ])("a filter's substitute fails %s", (_, config, filter) => {
    const packedConfig = { '@type': httpWasm, config: { vm_config: vm, ...config } };
    expect(valueWithout({ name: 'a', typed_config: packedConfig })).toEqual({ name: 'a', typed_config: filter });
    const struct = { '@type': 'type.googleapis.com/udpa.type.v1.TypedStruct', type_url: httpWasm, value: { config } };
    expect(valueWithout({ name: 'a', typedConfig: struct })).toEqual({ name: 'a', typedConfig: filter });
  });

  it("a network filter's substitute closes connections", () => {
    const packedConfig = { '@type': type('filters.network.wasm.v3.Wasm'), config: { vm_config: vm } };
    expect(valueWithout({ name: 'a', typed_config: packedConfig })).toEqual({
      name: 'a',
      typed_config: { '@type': type('filters.network.rbac.v3.RBAC'), statPrefix: 'wasm.', rules: {} },
    });
  });

  it('code is replaced at any depth, even if ECDS delivers the substitute', () => {
    const discovered = { name: 'b', config_discovery: { config_source: { ads: {} }, type_urls: [httpWasm] } };
    const manager = { http_filters: [{ name: 'a', typed_config: { '@type': httpWasm } }, discovered, { name: 'c' }] };
    expect(valueWithout({ filters: [{ typed_config: manager }] })).toEqual({
      filters: [
        {
          typed_config: {
            http_filters: [
              { name: 'a', typed_config: denies },
              {
                name: 'b',
                config_discovery: { config_source: { ads: {} }, type_urls: [httpWasm, denies['@type']] },
              },
              { name: 'c' },
            ],
          },
        },
      ],
    });
  });

  it.each([type('access_loggers.wasm.v3.WasmAccessLog'), type('stat_sinks.wasm.v3.Wasm'), type('wasm.v3.WasmService')])(
    'an entry of type %s is removed from its list, and the patch is omitted if nothing remains',
    (url) => {
      const entry = { name: 'a', typed_config: { '@type': url, config: { vm_config: vm } } };
      expect(valueWithout({ list: [entry, { name: 'b' }] })).toEqual({ list: [{ name: 'b' }] });
      expect(withoutWasm(patchOf(entry)).patch).toBeUndefined();
    },
  );

  it('a patch is unchanged if it has no Wasm code or its code is compiled into Envoy', () => {
    const native = { '@type': httpWasm, config: { vm_config: { runtime: 'envoy.wasm.runtime.null' } } };
    for (const value of [
      { name: 'a', typed_config: native },
      { list: [{ '@type': type('filters.http.lua.v3.Lua') }] },
    ]) {
      const patch = patchOf(value);
      expect(withoutWasm(patch).patch).toBe(patch);
    }
  });
});

describe('patches with Wasm code', () => {
  const value = `{name: a, typed_config: {"@type": ${httpWasm}, config: {vm_config: {runtime: envoy.wasm.runtime.v8, code: {local: {filename: /a.wasm}}}}}}`;
  const filter = (operation: string): string =>
    `{applyTo: HTTP_FILTER, match: {context: ANY, listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager}}}}, patch: {operation: ${operation}, value: ${value}}}`;

  it('proxies of the same mesh get different patches depending on their Envoy', () => {
    const patchedMesh = new PatchedMesh({ patches: [filter('INSERT_FIRST')] });
    const { context } = patchedMesh.mesh;
    const textFor = (minor: number): string =>
      JSON.stringify(
        patchedMesh.json('listeners', { ...nodes.server, envoy: { version: [1, minor, 0], hasV8: true } }),
      );
    expect(textFor(40)).toContain('filters.http.wasm');
    expect(textFor(36)).not.toContain('filters.http.wasm');
    expect(textFor(36)).toContain(
      '{"name":"a","typedConfig":{"rules":{},"@type":"type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC"}}',
    );
    const sets = [36, 37, 40].map((minor) =>
      patchSetOf(givenShape({ ...nodes.server, envoy: { version: [1, minor, 0], hasV8: true } }, context), context),
    );
    expect(sets[0]).toBe(sets[1]);
    expect(sets[0]).not.toBe(sets[2]);
  });

  it('the status of the original patch states that the patch is applied', () => {
    const patchedMesh = new PatchedMesh({ patches: [filter('INSERT_FIRST')] });
    patchedMesh.json('listeners', { ...nodes.server, envoy: { version: [1, 36, 0], hasV8: true } });
    const [parsedPatch] = patchedMesh.mesh.configs.EnvoyFilter[0]!.spec.configPatches;
    expect(patchStatus(parsedPatch!)).toEqual({ isApplied: true });
  });
});
