/** Binaries built once for all runs on a machine: reused, awaited, and never incomplete. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';

/** A slow `go` that counts its builds and writes the requested output, or fails. */
const standIn = `#!/bin/sh
[ "$1" = env ] && { echo go1.26; exit 0; }
echo build >> "$BUILDS"
sleep 0.3
[ -n "$BROKEN" ] && { echo "cannot find module" >&2; exit 1; }
while [ "$1" != -o ]; do shift; done
echo binary > "$2"
`;

function createBuild() {
  const folder = mkdtempSync(join(tmpdir(), 'chartpilot-build-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, 'bin'));
  writeFileSync(join(folder, 'bin/go'), standIn);
  chmodSync(join(folder, 'bin/go'), 0o755);
  const builds = join(folder, 'builds');
  const run = async (env: Record<string, string> = {}) => {
    const child = spawn(process.execPath, ['test/cluster/install.ts', 'api-server'], {
      cwd: packageRoot(),
      env: {
        ...process.env,
        PATH: `${folder}/bin:${process.env.PATH}`,
        XDG_CACHE_HOME: folder,
        BUILDS: builds,
        ...env,
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const [output, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
    return { output, code };
  };
  return {
    run,
    cache: join(folder, 'chartpilot/cluster'),
    builds: () => (existsSync(builds) ? readFileSync(builds, 'utf8').trim().split('\n').length : 0),
  };
}

it('findOrBuild builds a program once for concurrent callers and reuses it', async () => {
  const { run, builds, cache } = createBuild();
  const runs = await Promise.all([run(), run(), run()]);
  expect(runs.map(({ code }) => code)).toEqual([0, 0, 0]);
  expect((await run()).code).toBe(0);
  expect(builds()).toBe(1);
  const [digest = ''] = readdirSync(cache);
  expect(readdirSync(join(cache, digest))).toEqual(['api-server']);
});

it('findOrBuild reports the output of a failed Go build, leaves no file, and retries the build', async () => {
  const { run, builds, cache } = createBuild();
  const { output, code } = await run({ BROKEN: 'yes' });
  expect(code).toBe(1);
  expect(output).toContain('cannot find module');
  const [digest = ''] = readdirSync(cache);
  expect(readdirSync(join(cache, digest))).toEqual([]);
  expect((await run()).code).toBe(0);
  expect(builds()).toBe(2);
});

it('findOrBuild does not wait for an exited process', async () => {
  const { run, cache } = createBuild();
  await run({ BROKEN: 'yes' });
  const [digest = ''] = readdirSync(cache);
  const child = spawn('true');
  await once(child, 'close');
  writeFileSync(join(cache, digest, 'lock'), String(child.pid));
  expect((await run()).code).toBe(0);
});

it('findOrBuild reports that Go is missing', async () => {
  const { run } = createBuild();
  const { output, code } = await run({ PATH: dirname(process.execPath) });
  expect(code).toBe(1);
  expect(output).toContain('Install Go');
});
