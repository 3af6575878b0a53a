/** Some code must exist only once. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fieldTable } from '../src/runtime/error-codes/fields.ts';
import { errorTable } from '../src/runtime/errors.ts';
import { packageRoot } from '../src/runtime/package-root.ts';

const root = packageRoot();
const files = globSync('{machines,src,visualize}/**/*.{ts,tsx}', { cwd: root }).filter(
  (file) => !/^src\/gen\/|\.test\.tsx?$/.test(file),
);

/** Files whose code matches, ignoring comments. */
function filesWith(pattern: RegExp): string[] {
  const codeOf = (file: string): string =>
    readFileSync(join(root, file), 'utf8').replaceAll(/^\s*(\*|\/[/*]).*$/gm, '');
  return files.filter((file) => pattern.test(codeOf(file))).sort();
}

const resourceTypes = [
  ...['envoy.config.cluster.v3.Cluster', 'envoy.config.endpoint.v3.ClusterLoadAssignment'],
  ...['envoy.config.listener.v3.Listener', 'envoy.config.route.v3.RouteConfiguration'],
  ...['envoy.extensions.transport_sockets.tls.v3.Secret', 'envoy.config.core.v3.TypedExtensionConfig'],
  ...['istio.networking.nds.v1.NameTable', 'istio.mesh.v1alpha1.ProxyConfig', 'istio.v1.HealthInformation'],
];

test.each([
  {
    what: 'the type URL of a resource',
    pattern: new RegExp(
      `['"\`](type\\.googleapis\\.com/|\\$\\{\\w+\\})(${resourceTypes.join('|').replaceAll('.', '\\.')})['"\`]`,
    ),
    where: ['machines/discovery/xds/ads-types.ts'],
  },
  {
    what: 'the check for loopback addresses',
    pattern: /function isLoopback|startsWith\('127\.'\)/,
    where: ['src/runtime/addresses/loopback.ts'],
  },
  { what: 'the check for executable files', pattern: /\bX_OK\b/, where: ['src/runtime/files/executable.ts'] },
  {
    what: 'the check of the status of an API error',
    pattern: /error\.failure\.kind === 'status'/,
    where: ['src/discovery/kubernetes/api-failure.ts'],
  },
  {
    what: 'the formatting of an error in one line',
    pattern: /explainError\([^)]*\)\.replace/,
    where: ['src/runtime/errors.ts'],
  },
])('only one file contains $what', ({ pattern, where }) => {
  expect(filesWith(pattern)).toEqual(where);
});

test('names contain only words with a meaning in the field', () => {
  const unclearWords = [
    'oddit(y|ies)',
    'concern',
    'carriesOut',
    'remoteness',
    'deadly',
    'patience',
    'remed(y|ies)',
    'telling',
  ];
  const pattern = new RegExp(`(?<![a-z])(${[...unclearWords, 'narrate', 'laying'].join('|')})(?![a-z])`, 'i');
  const namesIn = (text: string): string =>
    text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$|'(\\.|[^'\\\n])*'|`(\\.|[^`\\])*`/gm, '');
  expect(namesIn("/** A concern. */ const it = 'telling'; // deadly\nconst laying = `remedy`;")).toMatch(pattern);
  expect(namesIn("/** A concern. */ const it = 'telling'; // deadly\nconst replaying = `remedy`;")).not.toMatch(
    pattern,
  );
  expect(files.filter((file) => pattern.test(namesIn(readFileSync(join(root, file), 'utf8'))))).toEqual([]);
});

test('each error code is used', () => {
  const texts = files
    .filter((file) => !file.startsWith('src/runtime/error-codes/'))
    .map((file) => readFileSync(join(root, file), 'utf8'));
  const unused = Object.keys({ ...errorTable, ...fieldTable }).filter(
    // Charts do not import `src/`: their reasons end with the code in brackets.
    (code) => !texts.some((text) => text.includes(`'${code}'`) || text.includes(`[${code}]`)),
  );
  expect(unused).toEqual([]);
});
