/** Debian packages that the tests need in addition to npm packages. Nothing is downloaded from elsewhere. */
import { spawnSync } from 'node:child_process';
import { ChartpilotError } from '../../src/runtime/errors.ts';

export interface RequiredPackages {
  /** Name of the package for users. */
  readonly name: string;
  readonly packages: readonly string[];
  /** Command for users if this process may not install packages. */
  readonly hint: string;
  /** The program's path, if it is installed. */
  readonly find: () => string | undefined;
}

/** @throws ChartpilotError if nothing may be installed, or the program is missing afterwards */
export function installPackages({ name, packages, hint, find }: RequiredPackages): void {
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

/** Prints nothing unless it fails. */
function aptGet(args: readonly string[], hint: string): void {
  const { status, stdout, stderr } = spawnSync('apt-get', ['-q', ...args], {
    encoding: 'utf8',
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  if (status === 0) return;
  console.error(`${stdout}${stderr}`.trim().split('\n').slice(-15).join('\n'));
  throw new ChartpilotError('REQUEST_FAILED', `apt-get ${args[0]} failed`, { hint });
}
