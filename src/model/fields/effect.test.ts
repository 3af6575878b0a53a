import { describe, expect, it } from 'vitest';
import { readConfigFile } from '../config/config-file.ts';
import { boolean, dictionary, list, optional, refine, required, restrictingField, struct, text } from './decode.ts';
import { effectWarnings, maxEffectWarnings, withoutEffect, withoutEffectWhere } from './effect.ts';

interface Thing {
  readonly used?: string;
  readonly unused?: string;
  readonly flag?: boolean;
  readonly scheme?: string;
}

const thingDecoder = struct<Thing>({
  used: optional(text),
  unused: withoutEffect(optional(text), 'nothing reads it'),
  flag: withoutEffect(restrictingField(optional(boolean)), 'it is always on', [true]),
  scheme: withoutEffectWhere(optional(text), 'only https is supported', (value) => value !== 'https'),
});

const pathsOf = (value: unknown): string[] =>
  effectWarnings(
    refine(
      struct<{ map: object; items?: object }>({
        map: required(dictionary(thingDecoder)),
        items: optional(list(thingDecoder)),
      }),
      () => [],
    ),
    value,
  ).map(({ path }) => path);

describe('a field that is marked as without effect', () => {
  it('is reported with its path and code at any depth', () => {
    expect(effectWarnings(list(thingDecoder), [{}, { unused: 'x', used: 'y' }])).toEqual([
      { path: '[1].unused', message: 'has no effect: nothing reads it', code: 'FIELD_WITHOUT_EFFECT' },
    ]);
    expect(pathsOf({ map: { 'a.b': { unused: 'x' } }, items: [{ flag: false }] })).toEqual([
      'map["a.b"].unused',
      'items[0].flag',
    ]);
  });

  it('is not reported if it is absent or empty, or requests the default behavior', () => {
    expect(pathsOf({ map: { a: { unused: null, flag: true }, b: { unused: '' } } })).toEqual([]);
  });

  it('is reported for at most 100 fields of an object, with the number of further fields', () => {
    const warnings = effectWarnings(
      list(thingDecoder),
      Array.from({ length: maxEffectWarnings + 7 }, () => ({ unused: 'x' })),
    );
    expect(warnings).toHaveLength(maxEffectWarnings + 1);
    expect(warnings.at(-1)).toEqual({
      ...{ path: '', message: 'has 7 more fields without effect', code: 'FIELD_WITHOUT_EFFECT' },
    });
  });

  it('is reported only for values that have no effect', () => {
    expect(pathsOf({ map: { a: { scheme: 'https' }, b: { scheme: 'oci' } } })).toEqual(['map.b.scheme']);
  });
});

describe('an object in a file', () => {
  const fieldsOf = (kind: string, spec: string): (string | undefined)[] =>
    readConfigFile('a.yaml', `apiVersion: ${kind}\nmetadata: {name: a}\nspec: ${spec}`, { creationTimestamp: 0 })
      .problems.filter(({ severity, code }) => severity === 'warning' && code === 'FIELD_WITHOUT_EFFECT')
      .map(({ field }) => field);

  it.each([
    [
      'telemetry.istio.io/v1\nkind: Telemetry',
      '{metrics: [{reportingInterval: 5s, overrides: [{match: {metric: REQUEST_COUNT}, tagOverrides: {a: {value: b}}}]}], ' +
        'tracing: [{useRequestIdForTraceSampling: false, disableContextPropagation: true}]}',
      [...['spec.tracing[0].useRequestIdForTraceSampling', 'spec.tracing[0].disableContextPropagation']],
    ],
    [
      'extensions.istio.io/v1alpha1\nkind: WasmPlugin',
      '{url: "oci://reg.test/x:1", imagePullSecret: s, imagePullPolicy: Always}',
      [],
    ],
    [
      'extensions.istio.io/v1alpha1\nkind: WasmPlugin',
      '{url: "file:///a", imagePullSecret: s, imagePullPolicy: Always, verificationKey: k}',
      ['spec.imagePullPolicy', 'spec.imagePullSecret', 'spec.verificationKey'],
    ],
    ['extensions.istio.io/v1alpha1\nkind: WasmPlugin', '{url: "file:///a", imagePullPolicy: UNSPECIFIED_POLICY}', []],
    ['networking.istio.io/v1beta1\nkind: ProxyConfig', '{concurrency: 1, image: {imageType: distroless}}', []],
    [
      'networking.istio.io/v1\nkind: Sidecar',
      '{ingress: [{port: {number: 80, protocol: HTTP}, connectionPool: {http: {h2UpgradePolicy: UPGRADE}}}]}',
      ['spec.ingress[0].connectionPool.http.h2UpgradePolicy'],
    ],
  ])('has for kind %s (%s) the warnings %j', (kind, spec, fields) => {
    expect(fieldsOf(kind, spec).sort()).toEqual([...fields].sort());
  });
});
