/** Where programs of this host leave what others of their user must find: locks of base ids, tokens of the debugger. */
import { rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ChartpilotError, messageOf } from '../errors.ts';
import { makeFolder } from './make-folder.ts';

/** Where services keep such files, if this user may write there. */
export const sharedRunDir = '/run/chartpilot';

/** `--runDir`, else `/run/chartpilot` where that can be written, else a directory of this user's below the temporary one. */
export function chooseRunDir(flag: string | undefined): string {
  if (flag !== undefined) return flag;
  try {
    makeFolder(sharedRunDir);
    const probe = join(sharedRunDir, `.probe-${process.pid}`);
    writeFileSync(probe, '');
    rmSync(probe);
    return sharedRunDir;
  } catch {
    return ownRunDir();
  }
}

/** The one of this user's below the temporary directory. */
function ownRunDir(): string {
  return join(tmpdir(), `chartpilot-${process.getuid?.() ?? 0}`);
}

/** Makes the directory where it is missing. @throws ChartpilotError FILE_UNREADABLE when it cannot be used */
export function ensureRunDir(runDir: string): void {
  try {
    makeFolder(runDir, 0o700);
    // Everybody knows the name, so somebody else may have put it there. A directory that was named is as it was meant to be.
    if (runDir === ownRunDir() && process.getuid?.() !== statSync(runDir).uid) {
      throw new Error('it belongs to another user');
    }
  } catch (error) {
    throw new ChartpilotError('FILE_UNREADABLE', `run directory ${runDir}: ${messageOf(error)}`, {
      hint: 'Name a directory that this user may write with --runDir.',
      cause: error,
    });
  }
}
