import { readFileSync } from 'node:fs';

/** How many files, sockets among them, this process may have open at the same time; undefined where the system does not tell. */
export function openFilesLimit(limits = '/proc/self/limits'): number | undefined {
  try {
    // Node has raised the soft limit to the hard one when it began.
    const [, soft] = /^Max open files\s+(\S+)/m.exec(readFileSync(limits, 'utf8')) ?? [];
    const limit = Number(soft);
    return Number.isSafeInteger(limit) ? limit : undefined;
  } catch {
    return undefined;
  }
}
