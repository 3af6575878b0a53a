import { expect, it } from 'vitest';
import { readConfigFile } from './config-file.ts';
import { isForeignDocument } from './foreign-document.ts';

/** A document that is too long for the full parser, which its anchor requires. */
const longDocument = (
  head: string,
  data: string,
) => `${head}\nmetadata: { name: a, namespace: shop, labels: &l { app: x } }\n${data}
  filler: |
${'    {"panels": [{"title": "requests", "type": "graph"}]},\n'.repeat(3_000)}`;
const messages = (text: string) =>
  readConfigFile('a.yaml', text, { creationTimestamp: 0 }).problems.map(({ message }) => message);
const tooLong = [expect.stringContaining('more than 131072 characters must not have')];

it('a long dashboard document that requires the full parser is skipped', () => {
  expect(messages(longDocument('apiVersion: v1\nkind: ConfigMap', 'data:\n  mesh.json: x'))).toEqual([]);
  expect(messages(longDocument('apiVersion: apps/v1\nkind: "Deployment"', 'spec:'))).toEqual([]);
});

it.each([
  [
    'an object that restricts access',
    longDocument('apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy', 'spec:'),
  ],
  ['a ConfigMap with an authority', longDocument('apiVersion: v1\nkind: ConfigMap', 'data:\n  ca.crt: x')],
  ['a list of objects', longDocument('apiVersion: v1\nkind: List', 'items:')],
  ['two kinds', longDocument('apiVersion: v1\nkind: Deployment\nkind: Gateway', 'spec:')],
  ['no kind', longDocument('apiVersion: v1', 'spec:')],
])('a long document that requires the full parser is rejected if it contains %s', (_, text) => {
  expect(isForeignDocument(text)).toBe(false);
  expect(messages(text)[0]).toEqual(tooLong[0]);
});
