/** What the tests need of this system besides npm's packages: Debian's own, never a downloaded program. */
import { spawnSync } from 'node:child_process';
import { ChartpilotError } from '../../src/runtime/errors.ts';

export interface WantedPackages {
  /** What a person calls it. */
  readonly name: string;
  readonly packages: readonly string[];
  /** What a person does where this may not. */
  readonly hint: string;
  /** The program's path, once it is there. */
  readonly find: () => string | undefined;
}

/** @throws ChartpilotError where nothing may be installed, or the program is not there afterwards */
export function installPackages({ name, packages, hint, find }: WantedPackages): void {
  if (process.getuid?.() !== 0 || spawnSync('apt-get', ['--version']).status !== 0) {
    throw new ChartpilotError('FILE_UNREADABLE', `no ${name} on this machine, and it may not be installed from here`, {
      hint,
    });
  }
  console.error(`${name} is not there: installing the package of this system`);
  aptGet(['update'], hint);
  aptGet(['install', '-y', '--no-install-recommends', ...packages], hint);
  const installed = find();
  if (installed === undefined) {
    throw new ChartpilotError('FILE_UNREADABLE', `apt-get installed ${packages[0]}, and it is not in PATH`, { hint });
  }
  console.error(`${name} installed: ${installed}`);
}

/** Quiet as long as it works. */
function aptGet(args: readonly string[], hint: string): void {
  const { status, stdout, stderr } = spawnSync('apt-get', ['-q', ...args], {
    encoding: 'utf8',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  if (status === 0) return;
  console.error(`${stdout}${stderr}`.trim().split('\n').slice(-15).join('\n'));
  throw new ChartpilotError('REQUEST_FAILED', `apt-get ${args[0]} failed`, { hint });
}
