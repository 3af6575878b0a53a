import * as E from 'fp-ts/lib/Either.js';
import { expect, it } from 'vitest';
import { extAuthzProvider } from './ext-authz-provider.ts';
import { readMeshConfig } from './mesh-config.decode.ts';
import { defaultMeshConfig } from './mesh-config.ts';

it('extAuthzProvider reads the included headers under both names', () => {
  const envoyExtAuthzHttp = {
    ...{ service: 'a.b', port: 80, timeout: '1.5s', statusOnError: '503' },
    ...{ includeHeadersInCheck: ['x-old'], includeRequestHeadersInCheck: ['x-new'], somethingNewer: true },
  };
  expect(extAuthzProvider({ name: 'p', envoyExtAuthzHttp })).toEqual(
    E.right({
      protocol: 'http',
      ...{ service: 'a.b', port: 80, timeoutMs: 1_500, statusOnError: 503 },
      includeRequestHeadersInCheck: ['x-old', 'x-new'],
    }),
  );
});

it('extAuthzProvider returns `undefined` for a provider of another type', () => {
  expect(extAuthzProvider({ name: 'p', prometheus: {} })).toBeUndefined();
});

it.each([
  ['service: ""', 'service'],
  ['port: 0', 'port'],
  ['timeout: soon', 'timeout'],
  ['statusOnError: "99"', 'statusOnError'],
  ['includeRequestBodyInCheck: {maxRequestBytes: 0}', 'includeRequestBodyInCheck.maxRequestBytes'],
  ['includeAdditionalHeadersInCheck: {"a b": c}', 'includeAdditionalHeadersInCheck["a b"]'],
  ['includeAdditionalHeadersInCheck: {a: "b\\nc"}', 'includeAdditionalHeadersInCheck.a'],
  ['pathPrefix: check', 'pathPrefix'],
])('an external authorization provider with %s is ignored with a warning', (wrongSetting, field) => {
  const settings = ['service: a.b', 'port: 80'].filter((line) => line.split(':')[0] !== wrongSetting.split(':')[0]);
  const text = `extensionProviders: [{name: p, envoyExtAuthzHttp: {${[...settings, wrongSetting].join(', ')}}}]`;
  const read = readMeshConfig('mesh.yaml', text, defaultMeshConfig);
  if (E.isLeft(read)) throw new Error(JSON.stringify(read.left));
  expect(read.right.mesh.extensionProviders.some(({ name }) => name === 'p')).toBe(false);
  expect(read.right.warnings.map((warning) => warning.field)).toEqual([
    `extensionProviders[0].envoyExtAuthzHttp.${field}`,
  ]);
});
