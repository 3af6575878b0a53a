/**
 * The directory for files that other programs of the same user must find: locks of base IDs, tokens of the debugger.
 */
import { existsSync, lstatSync, mkdtempSync, readdirSync, rmdirSync, type Stats } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { ChartpilotError, messageOf } from '../errors.ts';
import { ensureDirectory } from './make-folder.ts';

/** The directory of system services, used if this user may write there. */
export const sharedRunDir = '/run/chartpilot';

const writableByOthers = 0o022;

/**
 * Directory of the agent's generated files unless the proxy configuration names another one; relative to the working
 * directory.
 */
export const defaultConfigPath = './etc/istio/proxy';

/**
 * `--runDir`, else `/run/chartpilot` if it is writable, else a directory of this user below the temporary directory or, in a container with a
 * read-only root, below `configPath`.
 */
export function chooseRunDir(flag: string | undefined, configPath = defaultConfigPath): string {
  if (flag !== undefined) return flag;
  if (isWritableDirectory(sharedRunDir)) return sharedRunDir;
  const parents = [tmpdir(), resolve(configPath)];
  return userRunDir(parents.find((parent) => existsSync(parent) && isWritableDirectory(parent)) ?? tmpdir());
}

function isWritableDirectory(folder: string): boolean {
  try {
    ensureDirectory(folder);
    rmdirSync(mkdtempSync(join(folder, '.probe-')));
    return true;
  } catch {
    return false;
  }
}

export function isRunDirName(uid: number, name: string): boolean {
  return name === `chartpilot-${uid}` || fallbackNames(uid).test(name);
}

/** mkdtemp(3) appends six characters. */
const fallbackNames = (uid: number): RegExp => new RegExp(`^chartpilot-${uid}-[A-Za-z0-9]{6}$`);

/** The usual name is predictable, so another user may have created a file or directory with it. */
function userRunDir(parent: string): string {
  const uid = currentUid();
  const defaultDir = join(parent, `chartpilot-${uid}`);
  const existingStats = lstatSync(defaultDir, { throwIfNoEntry: false });
  if (existingStats === undefined || isOwnedPrivateDir(existingStats)) return defaultDir;
  const fallbackDir = existingFallback(parent, uid) ?? createdFallback(parent, uid);
  // `ensureRunDir` reports the error of the default directory.
  if (fallbackDir === undefined) return defaultDir;
  warnOnce(
    `run directory ${defaultDir} is not usable (${foreignOwnerReason(existingStats)}), using ${fallbackDir}; set --runDir to choose another one`,
  );
  return fallbackDir;
}

/** If several programs create a directory at the same time, all of them use the first by name. */
function createdFallback(parent: string, uid: number): string | undefined {
  try {
    mkdtempSync(join(parent, `chartpilot-${uid}-`));
  } catch {
    return undefined;
  }
  return existingFallback(parent, uid);
}

function existingFallback(parent: string, uid: number): string | undefined {
  const pattern = fallbackNames(uid);
  return readdirSync(parent)
    .filter((name) => pattern.test(name))
    .sort()
    .map((name) => join(parent, name))
    .find((path) => {
      const stats = lstatSync(path, { throwIfNoEntry: false });
      return stats !== undefined && isOwnedPrivateDir(stats);
    });
}

const reportedWarnings = new Set<string>();

function warnOnce(message: string): void {
  if (reportedWarnings.has(message)) return;
  reportedWarnings.add(message);
  process.emitWarning(message);
}

/** @throws ChartpilotError FILE_UNREADABLE if it cannot be used */
export function ensureRunDir(runDir: string): void {
  try {
    ensureDirectory(runDir, 0o700);
    // The owner and mode of a directory that the user named are not checked.
    if (basename(runDir) === `chartpilot-${currentUid()}`) requireOwnDirectory(runDir);
  } catch (error) {
    throw new ChartpilotError('FILE_UNREADABLE', `run directory ${runDir}: ${messageOf(error)}`, {
      hint: 'Set --runDir to a directory that this user may write.',
      fields: { path: '--runDir', got: runDir },
      cause: error,
    });
  }
}

/** @throws Error with the reason if the path is not a directory of this user, or other users may write to it */
export function requireOwnDirectory(path: string): void {
  const stats = lstatSync(path);
  if (!isOwnedPrivateDir(stats)) throw new Error(foreignOwnerReason(stats));
}

/** True only for a directory that only this user may write. The status must come from `lstat`, which does not follow links. */
export function isOwnedPrivateDir(stats: Stats): boolean {
  return stats.isDirectory() && stats.uid === currentUid() && (stats.mode & writableByOthers) === 0;
}

function foreignOwnerReason(stats: Stats): string {
  if (!stats.isDirectory()) return 'not a directory';
  if (stats.uid !== currentUid()) return `owner must be uid ${currentUid()}, got uid ${stats.uid}`;
  return 'other users may write to it';
}

function currentUid(): number {
  return process.geteuid?.() ?? 0;
}
