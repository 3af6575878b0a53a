import { expect, it } from 'vitest';
import { readConfigObject } from './config-file.ts';

const nestedLists = (levels: number): unknown => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);
const plugin = (levels: number): object => ({
  ...{ apiVersion: 'extensions.istio.io/v1alpha1', kind: 'WasmPlugin', metadata: { name: 'deep', namespace: 'shop' } },
  spec: { url: 'file:///plugin.wasm', pluginConfig: { deep: nestedLists(levels) } },
});
const read = (object: unknown) => readConfigObject('k8s://', object, { creationTimestamp: 0 });

it('an object can be nested as deeply as a document in a file, but not deeper', () => {
  expect(read(plugin(97))).toMatchObject({ config: { name: 'deep' }, problems: [] });
  for (const levels of [98, 9_000]) {
    expect(read(plugin(levels))).toMatchObject({
      config: undefined,
      problems: [{ severity: 'error', object: 'WasmPlugin shop/deep', message: 'nested deeper than 100 levels' }],
    });
  }
});

it('a policy that is nested too deeply fails closed, and is identified by its name', () => {
  const { standIns } = read({
    ...{
      apiVersion: 'security.istio.io/v1',
      kind: 'AuthorizationPolicy',
      metadata: { name: 'deep', namespace: 'shop' },
    },
    spec: { rules: nestedLists(9_000) },
  });
  expect(standIns).toMatchObject([{ kind: 'AuthorizationPolicy', namespace: 'shop', name: 'deep' }]);
});

it('an object of another project is ignored, however deeply it is nested', () => {
  expect(read({ apiVersion: 'v1', kind: 'Unknown', metadata: { name: 'a' }, spec: nestedLists(9_000) })).toMatchObject({
    ...{ config: undefined, standIns: [] },
    problems: [{ severity: 'warning' }],
  });
});
