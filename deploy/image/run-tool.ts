/** Runs programs of Debian and npm that build the image. */
import { execFileSync } from 'node:child_process';
import { ChartpilotError } from '../../src/runtime/errors.ts';
import { findExecutable } from '../../src/runtime/files/executable.ts';

/** Limit of a tool's output; the file list of the C library is the longest. */
const maxOutputBytes = 64 << 20;

const packageOf: Readonly<Record<string, string>> = {
  'apt-get': 'apt',
  'dpkg-deb': 'dpkg',
  tar: 'tar',
  npm: 'npm',
  python3: 'python3-pip',
  'x86_64-linux-gnu-strip': 'binutils-x86-64-linux-gnu',
  'x86_64-linux-gnu-readelf': 'binutils-x86-64-linux-gnu',
  'aarch64-linux-gnu-strip': 'binutils-aarch64-linux-gnu',
  'aarch64-linux-gnu-readelf': 'binutils-aarch64-linux-gnu',
};

export interface ToolOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
}

/** @throws ChartpilotError FILE_UNREADABLE with the command that installs the missing tools */
export function requireTools(tools: readonly string[]): void {
  const missing = tools.filter((tool) => findExecutable(tool, process.env) === undefined);
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map((tool) => packageOf[tool] ?? tool))];
  throw new ChartpilotError('FILE_UNREADABLE', `not in PATH: ${missing.join(', ')}`, {
    hint: `Run on Debian or Ubuntu: apt-get install ${packages.join(' ')}`,
  });
}

/**
 * Runs a tool in the C locale and waits for its exit.
 *
 * @returns standard output
 * @throws ChartpilotError REQUEST_FAILED with the last lines of its output
 */
export function runTool(tool: string, args: readonly string[], { cwd, env = process.env }: ToolOptions = {}): string {
  try {
    return execFileSync(tool, args, {
      encoding: 'utf8',
      maxBuffer: maxOutputBytes,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...env, LC_ALL: 'C' },
      ...(cwd === undefined ? {} : { cwd }),
    });
  } catch (error) {
    const { stdout = '', stderr = '', message } = error as Error & { stdout?: string; stderr?: string };
    const output = `${stdout}${stderr}`.trim().split('\n').slice(-10).join('\n');
    throw new ChartpilotError('REQUEST_FAILED', `${tool} ${args[0] ?? ''}: ${output || message}`, { cause: error });
  }
}
