import { readFileSync } from 'node:fs';

/** Includes sockets. `undefined` if the system does not report the limit. */
export function openFilesLimit(limits = '/proc/self/limits'): number | undefined {
  try {
    // Node raises the soft limit to the hard limit at its start.
    const [, softLimit] = /^Max open files\s+(\S+)/m.exec(readFileSync(limits, 'utf8')) ?? [];
    const limit = Number(softLimit);
    return Number.isSafeInteger(limit) ? limit : undefined;
  } catch {
    return undefined;
  }
}
