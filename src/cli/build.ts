/**
 * Bundles each program into few files under dist/: this takes a third of the start-up time and memory of loading the
 * sources.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { build, type Plugin } from 'esbuild';
import { prebuiltChartsFile } from '../debugger/visualize/known-charts.ts';
import { drawOwnCharts } from '../debugger/visualize/own-charts.ts';
import { thirdPartyNotices } from './third-party.ts';

const root = join(import.meta.dirname, '../..');

/**
 * Importing a built-in module reads each of its properties, and some properties load other modules: node:http loads fetch (14 MB and 40 ms of CPU
 * time), node:crypto loads WebCrypto. `process.getBuiltinModule` reads none of them.
 */
const facadePlugin: Plugin = {
  name: 'without-facades',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(node:)?[a-z_0-9]+(\/[a-z0-9]+)?$/ }, ({ path, kind }) =>
      isBuiltin(path)
        ? {
            path: path.replace(/^(node:)?/, 'node:'),
            // A dynamic import also provides each export by name.
            namespace: kind === 'require-call' ? 'builtin-require' : 'builtin-import',
          }
        : undefined,
    );
    onLoad({ filter: /.*/, namespace: 'builtin-require' }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});`,
    }));
    onLoad({ filter: /.*/, namespace: 'builtin-import' }, ({ path }) => ({ contents: builtinImport(path) }));
  },
};

/** Each access is marked as pure, so that esbuild removes the unused ones. */
function builtinImport(path: string): string {
  const names = Object.keys(process.getBuiltinModule(path) as object).filter(
    (name) => /^[\w$]+$/.test(name) && name !== 'default',
  );
  return [
    `const it = /* @__PURE__ */ process.getBuiltinModule(${JSON.stringify(path)});`,
    'const read = (name) => it[name];',
    'export default it;',
    ...names.map(
      (name, index) => `const _${index} = /* @__PURE__ */ read('${name}'); export { _${index} as ${name} };`,
    ),
  ].join('\n');
}

/** These modules cost tens of milliseconds at start. Each is loaded by the first use of one of these names. */
const deferredModules: Readonly<Record<string, { functions: string; objects?: string; classes?: string }>> = {
  'node:http2': { functions: 'connect createServer', objects: 'constants' },
  'node:tls': { functions: 'connect checkServerIdentity', classes: 'TLSSocket' },
  'node:zlib': { functions: 'createGunzip createGzip', objects: 'constants' },
  'node:crypto': {
    functions:
      'createHash createPrivateKey createPublicKey generateKeyPairSync hash randomBytes randomInt randomUUID sign timingSafeEqual verify',
    classes: 'X509Certificate',
  },
  'node:http': {
    functions: 'createServer get request validateHeaderName validateHeaderValue',
    classes: 'Agent',
  },
  'node:worker_threads': { functions: '', classes: 'Worker' },
  'node:dgram': { functions: 'createSocket' },
  'node:dns/promises': { functions: 'lookup' },
  'node:stream/consumers': { functions: 'text' },
  'node:v8': { functions: 'getHeapSnapshot serialize' },
};

/** Replaces what Pino loads at its start without need: its transports, the check whether it runs in a thread, and Node's assertions. */
const pinoPlugin: Plugin = {
  name: 'pino-alone',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^(\.\/(lib\/)?transport|worker_threads|assert)$/ }, ({ path, importer }) =>
      /node_modules\/(pino|sonic-boom)\//.test(importer) ? { path, namespace: 'pino-alone' } : undefined,
    );
    onLoad({ filter: /.*/, namespace: 'pino-alone' }, ({ path }) => ({ contents: stubSourceOf(path) }));
  },
};

function stubSourceOf(path: string): string {
  if (path === 'worker_threads') return 'module.exports = { isMainThread: true };';
  if (path === 'assert') return 'module.exports = (holds, what) => { if (!holds) throw new Error(what); };';
  return "module.exports = () => { throw new Error('pino has no transports here'); };";
}

const deferredModulePlugin: Plugin = {
  name: 'loaded-later',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:/ }, ({ path, importer, kind }) =>
      // The certificate helper needs the module at its start, and a `require` may use any export.
      !(path in deferredModules) || kind !== 'import-statement' || importer.endsWith('secrets/certificate-helper.ts')
        ? undefined
        : { path, namespace: 'loaded-later' },
    );
    onLoad({ filter: /.*/, namespace: 'loaded-later' }, ({ path }) => ({ contents: laterModule(path) }));
  },
};

function laterModule(path: string): string {
  const { functions, objects = '', classes = '' } = deferredModules[path]!;
  const builtinModuleExpression = `process.getBuiltinModule(${JSON.stringify(path)})`;
  const stubEach = (names: string, createStub: (name: string) => string): string[] =>
    names
      .split(' ')
      .flatMap((name) =>
        name === '' ? [] : `export const ${name} = ${createStub(`${builtinModuleExpression}.${name}`)};`,
      );
  const hasInstanceTrap = 'key === Symbol.hasInstance ? (value) => value instanceof';
  return [
    ...stubEach(functions, (name) => `(...args) => ${name}(...args)`),
    ...stubEach(objects, (name) => `new Proxy({}, { get: (_, key) => ${name}[key] })`),
    ...stubEach(
      classes,
      (name) =>
        `new Proxy(class {}, { get: (_, key) => ${hasInstanceTrap} ${name} : ${name}[key], construct: (_, args) => new (${name})(...args) })`,
    ),
  ].join('\n');
}
// Chunk names contain hashes, so chunks of earlier builds would accumulate.
rmSync(join(root, 'dist'), { recursive: true, force: true });
/** Threads and child programs, each of which needs an entry file. */
const threadsOf = {
  'pilot-agent': {
    'certificate-helper': 'src/agent/secrets/certificate-helper.ts',
    'port-stand-in': 'src/agent/ports/port-stand-in.ts',
  },
  'pilot-discovery': {
    'signing-helper': 'src/discovery/ca/issuing/signing-helper.ts',
    'go-template-helper': 'src/discovery/webhooks/go-templates/go-template-helper.ts',
  },
  chartpilot: {
    'drawing-helper': 'src/debugger/visualize/drawing-helper.ts',
    'explore-helper': 'src/simulation/agent/explore-helper.ts',
    'explore-discovery-helper': 'src/simulation/discovery/explore-discovery-helper.ts',
  },
};
const names = Object.keys(threadsOf) as (keyof typeof threadsOf)[];
// Separate builds: with shared chunks, each program would load seventy files instead of five and start with four times the CPU time.
const programs = await Promise.all(
  names.map((name) =>
    build({
      absWorkingDir: root,
      metafile: true,
      entryPoints: { [name]: `src/cli/${name}.ts`, ...threadsOf[name] },
      outdir: 'dist',
      outExtension: { '.js': '.mjs' },
      plugins: name === 'pilot-agent' ? [deferredModulePlugin, pinoPlugin, facadePlugin] : [pinoPlugin, facadePlugin],
      bundle: true,
      // A rarely used extension is loaded on demand.
      splitting: true,
      platform: 'node',
      format: 'esm',
      target: 'node22',
      sourcemap: 'linked',
      logLevel: 'warning',
      banner: {
        js: "import { createRequire as chartpilotRequire } from 'node:module'; const require = chartpilotRequire(import.meta.url);",
      },
    }),
  ),
);
// One character outside of Latin-1, even in a comment or a regular expression, makes V8 store the entire file with two
// bytes per character.
for (const { metafile } of programs) {
  for (const output of Object.keys(metafile.outputs).filter((file) => file.endsWith('.mjs'))) {
    const file = join(root, output);
    const text = readFileSync(file, 'utf8');
    const ascii = text.replaceAll(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
    if (ascii !== text) writeFileSync(file, ascii);
  }
}
// Runtime of generated tests, used with a user's machine and its XState.
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
  // A classic script, because a page opened from a file cannot load modules.
  format: 'iife',
  target: ['chrome120', 'firefox121', 'safari17.4'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  define: { 'process.env.NODE_ENV': '"production"' },
  loader: { '.html': 'text' },
  minify: true,
  // ASCII is the same in every encoding with which a file may be opened.
  charset: 'ascii',
  sourcemap: 'linked',
  logLevel: 'warning',
});
cpSync(join(root, 'visualize/index.html'), join(root, 'dist/visualize/index.html'));
// Read when an EnvoyFilter is first decoded.
cpSync(join(root, 'src/gen/envoy-api.binpb'), join(root, 'dist/envoy-api.binpb'));
// Read when a non-trivial regular expression is first used.
cpSync(join(root, 'node_modules/re2js/build/index.cjs'), join(root, 'dist/re2js.cjs'));
writeFileSync(join(root, prebuiltChartsFile), JSON.stringify(await drawOwnCharts()));
const bundles = [...programs.map(({ metafile }) => metafile), testRuntimes.metafile, recorders.metafile, page.metafile];
writeFileSync(join(root, 'dist/THIRD-PARTY.txt'), thirdPartyNotices(root, bundles));
// The first run of each program fills Node's compile cache.
for (const name of names) execFileSync(join(root, 'bin', name), ['--help']);
