/** Reading certificate directories: what their contents amount to, and waiting for files (spec/agent.md §3.2, §3.5). */
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromPromise } from 'xstate';
import { isSystemError, messageOf } from '../runtime/errors.ts';
import type { Logger } from '../runtime/log.ts';
import { certificateProblems } from './certificate-problems.ts';

const certificateFile = /\.(pem|crt|key)$/;
/** `..data` and the directories that it points to: what is in them is seen through the links beside them. */
const kubernetesInternal = /^\.\./;

/** What the directories hold, and why Envoy could not use it; no problems: it could. */
export interface CertificateReading {
  /** In hexadecimal. */
  readonly digest: string;
  /** The files that went into it. */
  readonly files: string[];
  readonly problems: string[];
}

/**
 * SHA-256 over the contents of the directories' certificate files, directory by directory as listed, names in order. A
 * file or directory that cannot be read adds nothing.
 */
export async function digestDirectories(directories: readonly string[]): Promise<CertificateReading> {
  const hash = createHash('sha256');
  const files: string[] = [];
  const problems: string[] = [];
  for (const directory of new Set(directories)) {
    const contents = new Map<string, Buffer>();
    for (const name of await certificateNames(directory)) {
      const file = join(directory, name);
      const content = await readFile(file).catch(() => undefined);
      if (content === undefined) continue;
      hash.update(content);
      files.push(file);
      contents.set(name, content);
    }
    problems.push(...certificateProblems(contents).map((problem) => `${directory}: ${problem}`));
  }
  return { digest: hash.digest('hex'), files, problems };
}

async function certificateNames(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch(() => [] as string[]);
  return names.filter((name) => certificateFile.test(name) && !kubernetesInternal.test(name)).sort();
}

/** The digest effect of the cert-watcher. */
export const digestFiles = fromPromise<CertificateReading, { directories: string[] }>(({ input }) =>
  digestDirectories(input.directories),
);

const pollMs = 100;
const firstNoticeMs = 1_000;

/** The wait effect of the cert-watcher: all files at the same time. Files that do not come in time are told, no error. */
export function waitForFiles(log: Logger) {
  return fromPromise<{ missing: string[] }, { files: string[]; limitMs: number }>(async ({ input, signal }) => {
    const came = await Promise.all(input.files.map((file) => waitForFile(file, input.limitMs, signal, log)));
    return { missing: input.files.filter((_, index) => !came[index]) };
  });
}

/** Notices after 1 s, 3 s, 7 s, …: the pause between them doubles. */
async function waitForFile(file: string, limitMs: number, stopped: AbortSignal, log: Logger): Promise<boolean> {
  const startedAt = performance.now();
  let pauseMs = firstNoticeMs;
  let noticeAtMs = firstNoticeMs;
  while (!stopped.aborted) {
    const problem = await whyUnreadable(file);
    if (problem === undefined) return true;
    const waitedMs = performance.now() - startedAt;
    if (problem !== 'missing' || waitedMs >= limitMs) {
      log.warn(`${file} is not there: Envoy is started without it`, { problem, waitedMs: Math.round(waitedMs) });
      return false;
    }
    if (waitedMs >= noticeAtMs) {
      log.info(`waiting for ${file}`, { waitedMs: Math.round(waitedMs) });
      pauseMs *= 2;
      noticeAtMs += pauseMs;
    }
    await sleep(pollMs, undefined, { signal: stopped }).catch(() => {});
  }
  return false;
}

async function whyUnreadable(file: string): Promise<string | undefined> {
  try {
    await stat(file);
    return undefined;
  } catch (error) {
    return isSystemError(error, 'ENOENT') ? 'missing' : messageOf(error);
  }
}
