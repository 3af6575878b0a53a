/** Bundles each program into one file under dist/: a third of the start-up time and memory of loading the sources. */
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
// Chunks are named after their content: those of earlier builds would stay for ever.
rmSync(join(root, 'dist'), { recursive: true, force: true });
const programs = await build({
  absWorkingDir: root,
  metafile: true,
  entryPoints: [
    ...['pilot-agent', 'pilot-discovery', 'chartpilot'].map((name) => ({ in: `src/cli/${name}.ts`, out: name })),
    // A thread needs a file of its own to begin with.
    { in: 'src/simulation/agent/explore-helper.ts', out: 'explore-helper' },
    { in: 'src/simulation/discovery/explore-discovery-helper.ts', out: 'explore-discovery-helper' },
    { in: 'src/discovery/authority/signing-helper.ts', out: 'signing-helper' },
    { in: 'src/agent/secrets/certificate-helper.ts', out: 'certificate-helper' },
  ],
  outdir: 'dist',
  outExtension: { '.js': '.mjs' },
  plugins: [withoutFetch],
  bundle: true,
  // Several programs and rare extensions share chunks; a rare extension is loaded when it is first needed.
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
});
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
const bundles = [programs.metafile, testRuntimes.metafile, recorders.metafile, page.metafile];
writeFileSync(join(root, 'dist/THIRD-PARTY.txt'), thirdPartyNotices(root, bundles));
// They find what the first run of each has compiled.
for (const name of ['pilot-agent', 'pilot-discovery', 'chartpilot']) execFileSync(join(root, 'bin', name), ['--help']);
