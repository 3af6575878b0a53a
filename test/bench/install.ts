/** `npm run bench:install`: time from an empty folder to the first routed request; see the usage. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { execa } from 'execa';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { exitWith, print, runBench } from './bench-run.ts';

const goalMs = 60_000;

const usage = `Usage: npm run bench:install -- [--omit-optional]

Packs this checkout and measures the steps of a user of the tarball: npm install in an empty
folder, Envoy's installation by the first agent, the demo's control plane, gateway and sidecar, a request through both. Caches
of npm, pip and Envoy are empty. Needs the package registries.

  --omit-optional  without the packaged Node: uses the one in PATH, at least 22.22

Exit code 1 if it took more than ${goalMs / 1_000} s, or a process or file was left behind.
`;

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { 'omit-optional': { type: 'boolean' }, help: { type: 'boolean' } } });
  if (values.help === true) {
    print(usage);
    return 0;
  }
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-install-'));
  try {
    return await measure(folder, values['omit-optional'] === true ? ['--omit=optional'] : []);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(folder: string, flags: readonly string[]): Promise<number> {
  const pack = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder];
  const { stdout } = await execa('npm', pack, { cwd: packageRoot() });
  const tarball = join(folder, stdout.trim());
  const installedIn = join(folder, 'empty');
  mkdirSync(installedIn);
  const env = {
    npm_config_cache: join(folder, 'npm'),
    XDG_CACHE_HOME: join(folder, 'cache'),
    PIP_NO_CACHE_DIR: '1',
    // These variables are set by this package's scripts; a user of the tarball has neither.
    ENVOY_BINARY: '',
    PATH: (process.env.PATH ?? '').split(':').filter(outside).join(':'),
  };

  const startedAt = performance.now();
  const printStep = (step: string): number => {
    const ms = performance.now() - startedAt;
    print(`${(ms / 1_000).toFixed(1).padStart(6)} s  ${step}`);
    return ms;
  };
  await execa('npm', ['install', '--no-audit', '--no-fund', ...flags, tarball], { cwd: installedIn, env });
  printStep('npm install of the tarball');
  let wholeMs = Number.POSITIVE_INFINITY;
  const { problems, refusedTraces } = await runBench({ installedIn, env }, async ({ mesh }) => {
    await Promise.all([mesh.startSamples(), mesh.startDiscovery()]);
    printStep('the control plane is ready');
    await mesh.startGateway().program.line(/Envoy .* is installed: /, { deadlineMs: 300_000 });
    printStep('Envoy is fetched and installed');
    mesh.startSidecar();
    await mesh.waitForResponse(mesh.httpTarget);
    wholeMs = printStep('a request through gateway and sidecar');
  });
  for (const problem of [...problems, ...refusedTraces]) print(problem);
  return wholeMs <= goalMs && problems.length + refusedTraces.length === 0 ? 0 : 1;
}

/** npm puts the folders of this checkout first. */
function outside(folder: string): boolean {
  return !folder.startsWith(packageRoot()) && !folder.includes('node-gyp-bin');
}

await exitWith(main);
