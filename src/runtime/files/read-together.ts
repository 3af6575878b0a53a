/**
 * Reads files that belong together, such as a certificate and its key, as of one moment. Kubernetes replaces the files of a mounted Secret or
 * ConfigMap atomically by switching one symbolic link (`tls.crt → ..data/tls.crt`, `..data → ..2026_11_28`).
 */
import { readlinkSync } from 'node:fs';
import { readlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/**
 * After so many attempts the last read is returned although links keep changing. Kubernetes switches at most every few
 * seconds.
 */
const maxAttempts = 10;
/** As in the kernel (`MAXSYMLINKS`). */
const maxLinks = 40;

type LinkTargets = Map<string, string | undefined>;

/**
 * Calls `read` until no symbolic link on the path of its files changed during the call.
 * @param read reads each file at `at(path)`, which follows each link as first read in this call
 */
export async function readConsistently<T>(
  read: (resolvePath: (path: string) => Promise<string>) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const links: LinkTargets = new Map();
    const locate = async (path: string): Promise<string> => {
      const steps = resolveLinksInSteps(path, links);
      let step = steps.next();
      while (!step.done) step = steps.next(await targetOf(step.value));
      return step.value;
    };
    try {
      const result = await read(locate);
      if (attempt === maxAttempts || (await areLinksUnchanged(links))) return result;
    } catch (error) {
      if (attempt === maxAttempts || (await areLinksUnchanged(links))) throw error;
    }
  }
}

export function readConsistentlySync<T>(read: (resolvePath: (path: string) => string) => T): T {
  for (let attempt = 1; ; attempt++) {
    const links: LinkTargets = new Map();
    const locate = (path: string): string => {
      const steps = resolveLinksInSteps(path, links);
      let step = steps.next();
      while (!step.done) step = steps.next(linkTarget(step.value));
      return step.value;
    };
    const isLastAttempt = (): boolean =>
      attempt === maxAttempts || [...links].every(([path, target]) => linkTarget(path) === target);
    try {
      const result = read(locate);
      if (isLastAttempt()) return result;
    } catch (error) {
      if (isLastAttempt()) throw error;
    }
  }
}

function* resolveLinksInSteps(path: string, links: LinkTargets): Generator<string, string, string | undefined> {
  const remainingNames = (path.startsWith('/') ? path : join(process.cwd(), path)).split('/').reverse();
  let resolvedPath = '/';
  let linkCount = 0;
  while (remainingNames.length > 0) {
    const name = remainingNames.pop()!;
    if (name === '' || name === '.') continue;
    if (name === '..') {
      resolvedPath = dirname(resolvedPath);
      continue;
    }
    const next = join(resolvedPath, name);
    // The text of a link in /proc does not identify its target.
    if (!links.has(next)) links.set(next, next.startsWith('/proc/') ? undefined : yield next);
    const target = links.get(next);
    if (target === undefined) resolvedPath = next;
    else if (++linkCount > maxLinks) return path;
    else {
      remainingNames.push(...target.split('/').reverse());
      if (target.startsWith('/')) resolvedPath = '/';
    }
  }
  return resolvedPath;
}

async function areLinksUnchanged(links: LinkTargets): Promise<boolean> {
  for (const [path, target] of links) if (!path.startsWith('/proc/') && (await targetOf(path)) !== target) return false;
  return true;
}

/** Also `undefined` if the path cannot be read; opening the file reports the reason. */
const targetOf = (path: string): Promise<string | undefined> => readlink(path).catch(() => undefined);

export function linkTarget(path: string): string | undefined {
  try {
    return path.startsWith('/proc/') ? undefined : readlinkSync(path);
  } catch {
    return undefined;
  }
}
