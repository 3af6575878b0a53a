/** A directory mounted like a Secret or ConfigMap by the kubelet, which another process atomically replaces again and again. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Contents by file name. */
export type MountedFiles = Readonly<Record<string, string>>;

export interface SwitchedMount {
  /** Resolves when the process has exited. */
  stop(): Promise<void>;
}

/** Creates a new directory, renames the link, and removes the previous directory. */
const kubelet = `
  const { mkdirSync, writeFileSync, symlinkSync, renameSync, rmSync } = require('node:fs');
  const { folder, versions, paceMs } = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let count = 1; ; count++) {
    const files = versions[count % versions.length];
    mkdirSync(folder + '/..' + count);
    for (const [name, content] of Object.entries(files)) writeFileSync(folder + '/..' + count + '/' + name, content);
    symlinkSync('..' + count, folder + '/..data_tmp');
    renameSync(folder + '/..data_tmp', folder + '/..data');
    if (count === 1) for (const name of Object.keys(files)) symlinkSync('..data/' + name, folder + '/' + name);
    else rmSync(folder + '/..' + (count - 1), { recursive: true });
    if (count === 2) process.stdout.write('switching');
    if (paceMs > 0) Atomics.wait(pause, 0, 0, paceMs);
  }
`;

/**
 * Resolves when the files exist and are being switched.
 * @param versions versions of the same files, used in turn
 * @param paceMs interval between switches; 0: as many switches as possible
 */
export async function switchedMount(
  folder: string,
  versions: readonly MountedFiles[],
  paceMs = 0,
): Promise<SwitchedMount> {
  const child = spawn(process.execPath, ['-e', kubelet], { stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(JSON.stringify({ folder, versions, paceMs }));
  await once(child.stdout, 'data');
  return {
    async stop() {
      if (child.exitCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'exit');
    },
  };
}
