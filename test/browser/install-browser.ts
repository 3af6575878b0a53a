/** `npm run chromium`, `npm run firefox`: sees to it that there is this browser on this machine. */
import { spawnSync } from 'node:child_process';
import { ChartpilotError, explainError } from '../../src/runtime/errors.ts';
import { findChromium, installCommand } from './chromium.ts';
import { findFirefox, installFirefox } from './firefox.ts';

interface Browser {
  readonly name: string;
  /** Of Debian and its kin. */
  readonly packages: readonly string[];
  /** The variable that names one that is there. */
  readonly variable: string;
  /** What a person runs where this may not. */
  readonly command: string;
  find(env: NodeJS.ProcessEnv): string | undefined;
}

// Without a font a page's texts have no width; without "recommends" it is 300 MB less.
const fonts = 'fonts-dejavu-core';
const browsers: readonly Browser[] = [
  {
    name: 'Chromium',
    packages: ['chromium', fonts],
    variable: 'CHROMIUM',
    command: installCommand,
    find: findChromium,
  },
  {
    name: 'Firefox',
    packages: ['firefox-esr', fonts],
    variable: 'FIREFOX',
    command: installFirefox,
    find: findFirefox,
  },
];

try {
  const browser = browsers.find(({ name }) => name.toLowerCase() === process.argv[2]);
  if (browser === undefined) {
    throw new ChartpilotError('FLAG_INVALID', `${process.argv[2] ?? 'nothing'} is no browser that can be installed`, {
      hint: `Name one of: ${browsers.map(({ name }) => name.toLowerCase()).join(', ')}.`,
    });
  }
  const found = browser.find(process.env);
  if (found !== undefined) console.error(`${browser.name} is there: ${found}`);
  else install(browser);
} catch (error) {
  console.error(explainError(error));
  process.exitCode = 1;
}

function install({ name, packages, variable, command, find }: Browser): void {
  const hint = `Run: ${command}\n    or name one that is there: ${variable}=/path/to/${name.toLowerCase()}`;
  if (process.getuid?.() !== 0 || spawnSync('apt-get', ['--version']).status !== 0) {
    throw new ChartpilotError('FILE_UNREADABLE', `no ${name} on this machine, and it may not be installed from here`, {
      hint,
    });
  }
  console.error(`${name} is not there: installing the package of this system`);
  aptGet(['update'], hint);
  aptGet(['install', '-y', '--no-install-recommends', ...packages], hint);
  const installed = find(process.env);
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
