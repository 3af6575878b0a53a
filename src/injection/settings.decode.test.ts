import * as E from 'fp-ts/lib/Either.js';
import { expect, test } from 'vitest';
import { decodeInjectionConfig, decodeInjectionValues } from './settings.decode.ts';
import { defaultInjectionConfig, defaultInjectionValues } from './settings.ts';

test("empty settings have the chart's defaults", () => {
  expect(decodeInjectionConfig('')).toEqual(E.right({ settings: defaultInjectionConfig, warnings: [] }));
  const image = { hub: 'example.com', tag: '1' };
  expect(decodeInjectionValues('global: {hub: example.com, tag: "1"}')).toEqual(
    E.right({ ...defaultInjectionValues, ...image }),
  );
});

test('the image is required, because none is published', () => {
  const decoded = decodeInjectionValues('global: {hub: example.com}');
  expect(E.isLeft(decoded) && decoded.left.map(({ path, code }) => ({ path, code }))).toEqual([
    { path: 'global.tag', code: 'FIELD_REQUIRED' },
  ]);
  const complete = 'global: {proxy: {image: example.com/a:1}, proxy_init: {image: example.com/a:1}}';
  expect(E.isRight(decodeInjectionValues(complete))).toBe(true);
});

test("values have the chart's names and can be numbers or strings", () => {
  const values = decodeInjectionValues(`
global:
  hub: example.com
  tag: 1.24
  network: n1
  multiCluster: {clusterName: west}
  imagePullSecrets: [pull]
  unknownToTheInjector: {}
  proxy: {image: agent, logLevel: debug, statusPort: "15022", startupProbe: {enabled: false}}
pilot: {cni: {enabled: true}, env: {ENABLE_NATIVE_SIDECARS: false}}
`);
  expect(values).toMatchObject(
    E.right({
      ...{ hub: 'example.com', tag: '1.24', network: 'n1', clusterName: 'west', imagePullSecrets: ['pull'] },
      ...{ image: 'agent', logLevel: 'debug', statusPort: 15022, startupProbe: false, nativeSidecars: false },
      cni: { enabled: true, provider: 'default' },
    }),
  );
});

test("a template is YAML or a Go template, and invalid YAML causes an error with the template's name", () => {
  const config = decodeInjectionConfig(`
template: old
templates:
  mine: |
    spec: {priorityClassName: high}
  go: "{{ .Values }}"
`);
  const templates = { mine: { spec: { priorityClassName: 'high' } } };
  expect(config).toMatchObject(E.right({ settings: { templates, goTemplates: { go: '{{ .Values }}' } } }));
  expect(E.isRight(config) && config.right.warnings.map(({ path }) => path)).toEqual(['template']);
  const invalidConfig = decodeInjectionConfig('templates: {broken: "{", list: "[]"}');
  expect(E.isLeft(invalidConfig) && invalidConfig.left.map(({ path }) => path)).toEqual([
    'templates.broken',
    'templates.list',
  ]);
});

test.each([
  ['policy: 3', 'policy'],
  [
    'neverInjectSelector: [{matchExpressions: [{key: a, operator: Is}]}]',
    'neverInjectSelector[0].matchExpressions[0].operator',
  ],
  ['polcy: enabled', 'polcy'],
])('the setting %s causes an error at field %s', (yaml, path) => {
  const decoded = decodeInjectionConfig(yaml);
  expect(E.isLeft(decoded) && decoded.left.map((error) => error.path)).toEqual([path]);
});
