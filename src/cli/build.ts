/** Bundles each program into few files under dist/: a third of the start-up time and memory of loading the sources. */
import { execFileSync } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { knownChartsFile } from '../debugger/visualize/known-charts.ts';
import { drawOwnCharts } from '../debugger/visualize/own-charts.ts';
import { thirdPartyNotices } from './third-party.ts';

const root = join(import.meta.dirname, '../..');

/**
 * An import of node:http reads each of its properties, and some of them load fetch: 14 MB and 40 ms of processor time for
 * every program, of which none uses it. Asked for by a call, they stay unread.
 */
const withoutFetch: Plugin = {
  name: 'without-fetch',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(node:)?http$/ }, () => ({ path: 'node:http', namespace: 'without-fetch' }));
    onLoad({ filter: /.*/, namespace: 'without-fetch' }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});`,
    }));
  },
};
/**
 * Of Node's own modules, those that cost a start tens of milliseconds and that nobody uses in its first moments: each is loaded by the
 * first use of one of these.
 */
const laterModules: Readonly<Record<string, { functions: string; objects?: string; classes?: string }>> = {
  'node:http2': { functions: 'connect createServer', objects: 'constants' },
  'node:tls': { functions: 'connect checkServerIdentity', classes: 'TLSSocket' },
  'node:zlib': { functions: 'createGzip', objects: 'constants' },
  'node:worker_threads': { functions: '', classes: 'Worker' },
};

const loadedLater: Plugin = {
  name: 'loaded-later',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:(http2|tls|zlib|worker_threads)$/ }, ({ path, importer }) =>
      // A thread begins with it, and what others wrote may use whatever is in there.
      importer.includes('node_modules') || importer.endsWith('secrets/certificate-helper.ts')
        ? undefined
        : { path, namespace: 'loaded-later' },
    );
    onLoad({ filter: /.*/, namespace: 'loaded-later' }, ({ path }) => ({ contents: laterModule(path) }));
  },
};

function laterModule(path: string): string {
  const { functions, objects = '', classes = '' } = laterModules[path]!;
  const loaded = `process.getBuiltinModule(${JSON.stringify(path)})`;
  const each = (names: string, stub: (name: string) => string): string[] =>
    names.split(' ').flatMap((name) => (name === '' ? [] : `export const ${name} = ${stub(`${loaded}.${name}`)};`));
  const isOne = 'key === Symbol.hasInstance ? (value) => value instanceof';
  return [
    ...each(functions, (one) => `(...args) => ${one}(...args)`),
    ...each(objects, (one) => `new Proxy({}, { get: (_, key) => ${one}[key] })`),
    ...each(
      classes,
      (one) =>
        `new Proxy(class {}, { get: (_, key) => ${isOne} ${one} : ${one}[key], construct: (_, args) => new (${one})(...args) })`,
    ),
  ].join('\n');
}
// Chunks are named after their content: those of earlier builds would stay for ever.
rmSync(join(root, 'dist'), { recursive: true, force: true });
/** With the threads that it starts: each needs a file of its own to begin with. */
const threadsOf = {
  'pilot-agent': { 'certificate-helper': 'src/agent/secrets/certificate-helper.ts' },
  'pilot-discovery': { 'signing-helper': 'src/discovery/authority/signing-helper.ts' },
  chartpilot: {
    'explore-helper': 'src/simulation/agent/explore-helper.ts',
    'explore-discovery-helper': 'src/simulation/discovery/explore-discovery-helper.ts',
  },
};
const names = Object.keys(threadsOf) as (keyof typeof threadsOf)[];
// Programs that share chunks begin with seventy files each; alone, with five: a quarter of the processor time of a start.
const programs = await Promise.all(
  names.map((name) =>
    build({
      absWorkingDir: root,
      metafile: true,
      entryPoints: { [name]: `src/cli/${name}.ts`, ...threadsOf[name] },
      outdir: 'dist',
      outExtension: { '.js': '.mjs' },
      plugins: name === 'pilot-agent' ? [withoutFetch, loadedLater] : [withoutFetch],
      bundle: true,
      // A rare extension is loaded when it is first needed.
      splitting: true,
      platform: 'node',
      format: 'esm',
      target: 'node22',
      sourcemap: 'linked',
      logLevel: 'warning',
      // CommonJS dependencies inside an ES module bundle ask for require.
      banner: {
        js: "import { createRequire as chartpilotRequire } from 'node:module'; const require = chartpilotRequire(import.meta.url);",
      },
    }),
  ),
);
// What generated tests import: beside a machine of somebody else's, and with that machine's XState.
const testRuntimes = await build({
  absWorkingDir: root,
  metafile: true,
  entryPoints: [
    'src/debugger/generate/machine-test.ts',
    'src/debugger/generate/published-machines.ts',
    'src/debugger/replay/replay-test.ts',
  ],
  outdir: 'dist',
  outExtension: { '.js': '.mjs' },
  entryNames: '[name]',
  bundle: true,
  external: ['xstate'],
  platform: 'node',
  format: 'esm',
  target: 'node22',
  sourcemap: 'linked',
  logLevel: 'warning',
});
// What any XState program records itself with, also in a browser.
const recorders = await build({
  absWorkingDir: root,
  metafile: true,
  entryPoints: [
    { in: 'src/record/record.ts', out: 'record' },
    { in: 'src/record/node.ts', out: 'record-node' },
  ],
  outdir: 'dist',
  outExtension: { '.js': '.mjs' },
  bundle: true,
  external: ['xstate', 'node:*'],
  platform: 'neutral',
  format: 'esm',
  target: ['es2022'],
  sourcemap: 'linked',
  logLevel: 'warning',
});
// The debugger's page, with everything that it needs: it is served from here, and put into single files.
const page = await build({
  absWorkingDir: root,
  metafile: true,
  entryPoints: [
    { in: 'visualize/main.tsx', out: 'page' },
    { in: 'visualize/page.css', out: 'page' },
  ],
  outdir: 'dist/visualize',
  bundle: true,
  platform: 'browser',
  // No module: a page that is opened from a file may not load one.
  format: 'iife',
  target: ['chrome120', 'firefox121', 'safari17.4'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  define: { 'process.env.NODE_ENV': '"production"' },
  // A page that makes a file of itself begins with the same.
  loader: { '.html': 'text' },
  minify: true,
  // Nothing but ASCII: the bytes are the same in every encoding that a file may be opened with.
  charset: 'ascii',
  sourcemap: 'linked',
  logLevel: 'warning',
});
cpSync(join(root, 'visualize/index.html'), join(root, 'dist/visualize/index.html'));
// Read when an EnvoyFilter is first decoded.
cpSync(join(root, 'src/gen/envoy-api.binpb'), join(root, 'dist/envoy-api.binpb'));
// Read when a regular expression is first met that is not plain.
cpSync(join(root, 'node_modules/re2js/build/index.cjs'), join(root, 'dist/re2js.cjs'));
writeFileSync(join(root, knownChartsFile), JSON.stringify(await drawOwnCharts()));
const bundles = [...programs.map(({ metafile }) => metafile), testRuntimes.metafile, recorders.metafile, page.metafile];
writeFileSync(join(root, 'dist/THIRD-PARTY.txt'), thirdPartyNotices(root, bundles));
// They find what the first run of each has compiled.
for (const name of names) execFileSync(join(root, 'bin', name), ['--help']);
