/** What was once written in several places, with several answers, stands in one. */
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

/** Comments are left out. */
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
    what: 'the URL of a type of resource',
    pattern: new RegExp(
      `['"\`](type\\.googleapis\\.com/|\\$\\{\\w+\\})(${resourceTypes.join('|').replaceAll('.', '\\.')})['"\`]`,
    ),
    where: ['machines/discovery/xds/ads-types.ts'],
  },
  {
    what: 'whether an address is loopback',
    pattern: /function isLoopback|startsWith\('127\.'\)/,
    where: ['src/runtime/addresses/loopback.ts'],
  },
  { what: 'whether a program can be run', pattern: /\bX_OK\b/, where: ['src/runtime/files/executable.ts'] },
  {
    what: 'with which status an API server answered',
    pattern: /error\.failure\.kind === 'status'/,
    where: ['src/discovery/kubernetes/api-failure.ts'],
  },
  {
    what: 'an error in one line',
    pattern: /explainError\([^)]*\)\.replace/,
    where: ['src/runtime/errors.ts'],
  },
])('$what', ({ pattern, where }) => {
  expect(filesWith(pattern)).toEqual(where);
});

test('words that nobody can look up, where the field has one, have not come back as names', () => {
  const homemade = [
    'oddit(y|ies)',
    'concern',
    'carriesOut',
    'remoteness',
    'deadly',
    'patience',
    'remed(y|ies)',
    'telling',
  ];
  const pattern = new RegExp(`(?<![a-z])(${[...homemade, 'narrate', 'laying'].join('|')})(?![a-z])`, 'i');
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
    // Charts import nothing of `src/`: their reasons end with the code in brackets.
    (code) => !texts.some((text) => text.includes(`'${code}'`) || text.includes(`[${code}]`)),
  );
  expect(unused).toEqual([]);
});
