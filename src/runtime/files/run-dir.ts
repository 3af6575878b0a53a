/** Where programs of this host leave what others of their user must find: locks of base ids, tokens of the debugger. */
import { existsSync, lstatSync, mkdtempSync, readdirSync, rmdirSync, type Stats } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { ChartpilotError, messageOf } from '../errors.ts';
import { makeFolder } from './make-folder.ts';

/** Where services keep such files, if this user may write there. */
export const sharedRunDir = '/run/chartpilot';

/** Permission bits that let others than the owner write. */
const writableByOthers = 0o022;

/** Directory of the agent's generated files, unless the proxy configuration names another one; below the working directory. */
export const defaultConfigPath = './etc/istio/proxy';

/**
 * `--runDir`, else `/run/chartpilot` where that can be written, else a directory of this user's below the temporary one or, in a container
 * whose root is read-only, below `configPath`. Creates the one that it returns unless it was named.
 */
export function chooseRunDir(flag: string | undefined, configPath = defaultConfigPath): string {
  if (flag !== undefined) return flag;
  if (isWritable(sharedRunDir)) return sharedRunDir;
  const parents = [tmpdir(), resolve(configPath)];
  return userRunDir(parents.find((parent) => existsSync(parent) && isWritable(parent)) ?? tmpdir());
}

function isWritable(folder: string): boolean {
  try {
    makeFolder(folder);
    rmdirSync(mkdtempSync(join(folder, '.probe-')));
    return true;
  } catch {
    return false;
  }
}

/** Whether `chooseRunDir` may return a directory of this name, below one of its parents, in a program of this user. */
export function isRunDirNameOf(uid: number, name: string): boolean {
  return name === `chartpilot-${uid}` || fallbackNames(uid).test(name);
}

/** mkdtemp(3) appends six characters. */
const fallbackNames = (uid: number): RegExp => new RegExp(`^chartpilot-${uid}-[A-Za-z0-9]{6}$`);

/** Everybody knows the usual name, so another user may have created something there. */
function userRunDir(parent: string): string {
  const uid = currentUid();
  const usual = join(parent, `chartpilot-${uid}`);
  const occupied = lstatSync(usual, { throwIfNoEntry: false });
  if (occupied === undefined || isOwnDirectory(occupied)) return usual;
  const other = existingFallback(parent, uid) ?? createdFallback(parent, uid);
  // `ensureRunDir` reports what is wrong with the usual one.
  if (other === undefined) return usual;
  warnOnce(
    `run directory ${usual} is not usable (${whyNotOwn(occupied)}), using ${other}; set --runDir to choose another one`,
  );
  return other;
}

/**
 * Several programs may create one at the same time: all of them then use the first by name.
 *
 * @returns `undefined` if nothing can be created there
 */
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
      return stats !== undefined && isOwnDirectory(stats);
    });
}

const warned = new Set<string>();

function warnOnce(message: string): void {
  if (warned.has(message)) return;
  warned.add(message);
  process.emitWarning(message);
}

/** Creates the directory if it is missing. @throws ChartpilotError FILE_UNREADABLE when it cannot be used */
export function ensureRunDir(runDir: string): void {
  try {
    makeFolder(runDir, 0o700);
    // A directory that was named is as its user wants it.
    if (basename(runDir) === `chartpilot-${currentUid()}`) requireOwnDirectory(runDir);
  } catch (error) {
    throw new ChartpilotError('FILE_UNREADABLE', `run directory ${runDir}: ${messageOf(error)}`, {
      hint: 'Set --runDir to a directory that this user may write.',
      fields: { path: '--runDir', got: runDir },
      cause: error,
    });
  }
}

/**
 * For a directory whose files decide what this program does: only its user may have written them.
 *
 * @throws Error with the reason if the path is not a directory of this user, or others may write there
 */
export function requireOwnDirectory(path: string): void {
  const stats = lstatSync(path);
  if (!isOwnDirectory(stats)) throw new Error(whyNotOwn(stats));
}

/** Whether a path, followed to no link, is a directory that only this user may write. */
export function isOwnDirectory(stats: Stats): boolean {
  return stats.isDirectory() && stats.uid === currentUid() && (stats.mode & writableByOthers) === 0;
}

function whyNotOwn(stats: Stats): string {
  if (!stats.isDirectory()) return 'not a directory';
  if (stats.uid !== currentUid()) return `owner must be uid ${currentUid()}, got uid ${stats.uid}`;
  return 'other users may write to it';
}

function currentUid(): number {
  return process.geteuid?.() ?? 0;
}
