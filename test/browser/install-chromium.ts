/** `npm run chromium`: sees to it that there is a Chromium on this machine. */
import { spawnSync } from 'node:child_process';
import { ChartpilotError, explainError } from '../../src/runtime/errors.ts';
import { findChromium, installCommand } from './chromium.ts';

// Without a font a page's texts have no width; without "recommends" it is 300 MB less.
const packages = ['chromium', 'fonts-dejavu-core'];

try {
  const found = findChromium(process.env);
  if (found !== undefined) console.error(`Chromium is there: ${found}`);
  else install();
} catch (error) {
  console.error(explainError(error));
  process.exitCode = 1;
}

function install(): void {
  const hint = `Run: ${installCommand}\n    or name one that is there: CHROMIUM=/path/to/chromium`;
  if (process.getuid?.() !== 0 || spawnSync('apt-get', ['--version']).status !== 0) {
    throw new ChartpilotError('FILE_UNREADABLE', 'no Chromium on this machine, and it may not be installed from here', {
      hint,
    });
  }
  console.error('Chromium is not there: installing the package of this system');
  aptGet(['update'], hint);
  aptGet(['install', '-y', '--no-install-recommends', ...packages], hint);
  const installed = findChromium(process.env);
  if (installed === undefined) {
    throw new ChartpilotError('FILE_UNREADABLE', 'apt-get installed chromium, and it is not in PATH', { hint });
  }
  console.error(`Chromium installed: ${installed}`);
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
