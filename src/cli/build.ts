/** Bundles each program into one file under dist/: a third of the start-up time and memory of loading the sources. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const root = join(import.meta.dirname, '../..');
// Chunks are named after their content: those of earlier builds would stay for ever.
rmSync(join(root, 'dist'), { recursive: true, force: true });
await build({
  absWorkingDir: root,
  entryPoints: [
    ...['pilot-agent', 'pilot-discovery', 'chartpilot'].map((name) => ({ in: `src/cli/${name}.ts`, out: name })),
    // A thread needs a file of its own to begin with.
    { in: 'test/simulation/explore-helper.ts', out: 'explore-helper' },
  ],
  outdir: 'dist',
  outExtension: { '.js': '.mjs' },
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
await build({
  absWorkingDir: root,
  entryPoints: ['src/debugger/generate/machine-test.ts'],
  outfile: 'dist/machine-test.mjs',
  bundle: true,
  external: ['xstate'],
  platform: 'node',
  format: 'esm',
  target: 'node22',
  sourcemap: 'linked',
  logLevel: 'warning',
});
