/** Where programs of this host leave what others of their user must find: locks of base ids, tokens of the debugger. */
import { lstatSync, mkdtempSync, readdirSync, rmdirSync, type Stats } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ChartpilotError, messageOf } from '../errors.ts';
import { makeFolder } from './make-folder.ts';

/** Where services keep such files, if this user may write there. */
export const sharedRunDir = '/run/chartpilot';

/** Permission bits that let others than the owner write. */
const writableByOthers = 0o022;

/**
 * `--runDir`, else `/run/chartpilot` where that can be written, else a directory of this user's below the temporary one. Creates the one
 * that it returns unless it was named.
 */
export function chooseRunDir(flag: string | undefined): string {
  if (flag !== undefined) return flag;
  try {
    makeFolder(sharedRunDir);
    rmdirSync(mkdtempSync(join(sharedRunDir, '.probe-')));
    return sharedRunDir;
  } catch {
    return userRunDir();
  }
}

/** Whether `chooseRunDir` may return a directory of this name, below the temporary one, in a program of this user. */
export function isRunDirNameOf(uid: number, name: string): boolean {
  return name === `chartpilot-${uid}` || fallbackNames(uid).test(name);
}

/** mkdtemp(3) appends six characters. */
const fallbackNames = (uid: number): RegExp => new RegExp(`^chartpilot-${uid}-[A-Za-z0-9]{6}$`);

/** Everybody knows the usual name, so another user may have created something there. */
function userRunDir(): string {
  const uid = currentUid();
  const usual = join(tmpdir(), `chartpilot-${uid}`);
  const occupied = lstatSync(usual, { throwIfNoEntry: false });
  if (occupied === undefined || isOwnDirectory(occupied)) return usual;
  const other = existingFallback(uid) ?? createdFallback(uid);
  // `ensureRunDir` reports what is wrong with the usual one.
  if (other === undefined) return usual;
  warnOnce(
    `run directory ${usual} cannot be used: ${whyNotOwn(occupied)}; using ${other} (--runDir names another one)`,
  );
  return other;
}

/**
 * Several programs may create one at the same time: all of them then use the first by name.
 *
 * @returns `undefined` if nothing can be created there
 */
function createdFallback(uid: number): string | undefined {
  try {
    mkdtempSync(join(tmpdir(), `chartpilot-${uid}-`));
  } catch {
    return undefined;
  }
  return existingFallback(uid);
}

function existingFallback(uid: number): string | undefined {
  const pattern = fallbackNames(uid);
  return readdirSync(tmpdir())
    .filter((name) => pattern.test(name))
    .sort()
    .map((name) => join(tmpdir(), name))
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
    if (runDir === join(tmpdir(), `chartpilot-${currentUid()}`)) requireOwnDirectory(runDir);
  } catch (error) {
    throw new ChartpilotError('FILE_UNREADABLE', `run directory ${runDir}: ${messageOf(error)}`, {
      hint: 'Name a directory that this user may write with --runDir.',
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
  if (!stats.isDirectory()) return 'it is not a directory';
  if (stats.uid !== currentUid()) return `it belongs to another user (uid ${stats.uid})`;
  return 'others may write there';
}

function currentUid(): number {
  return process.geteuid?.() ?? 0;
}
