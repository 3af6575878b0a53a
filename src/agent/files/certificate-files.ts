/** Reading certificate directories: what their contents amount to, and waiting for files (spec/agent.md §3.2, §3.5). */
import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromCallback, fromPromise } from 'xstate';
import type { FilesPending } from '../../../machines/agent/protocol.ts';
import { type CertificateProblem, problemOf } from '../../identity/certificate-problem.ts';
import { isSystemError, messageOf } from '../../runtime/errors.ts';
import type { FileTurns } from '../../runtime/files/file-turns.ts';
import { readTogether } from '../../runtime/files/read-together.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { type CertificateSet, describeCertificates, inspectCertificates } from './certificate-problems.ts';
import { readSmallFile } from './certificate-reading.ts';
import type { CertificateJudge } from './certificate-verdict.ts';

/** Names of files that are watched and read. */
export const certificateFile = /\.(pem|crt|key)$/;
/** `..data` and the directories that it points to: what is in them is seen through the links beside them. */
export const kubernetesInternal = /^\.\./;

/** What the directories hold, and why Envoy could not use it; no problems: it could. */
export interface CertificateReading {
  /** SHA-256 over what the files hold, in hexadecimal. */
  readonly digest: string;
  /** The files that went into it. */
  readonly files: string[];
  readonly problems: string[];
  /** Codes of the problems, each once; `undefined` without problems. */
  readonly code?: string;
  /** Why Envoy could not be asked whether it takes them. */
  readonly notJudged?: string;
}

interface DirectoriesRead extends CertificateReading {
  readonly found: readonly CertificateProblem[];
  /** What Envoy is to judge. */
  readonly sets: readonly CertificateSet[];
  readonly contents: ReadonlyMap<string, Buffer>;
}

/** A directory of more is none of certificates alone. */
export const mostFiles = 1_000;
const mostBytes = 64 * 1024 * 1024;

/**
 * SHA-256 over the contents of the directories' certificate files, directory by directory as listed, names in order. A
 * file or directory that cannot be read adds nothing, and is told. Rejects only when it is given up: what hangs is not to be
 * ended, but nothing is read after it.
 */
export async function digestDirectories(
  directories: readonly string[],
  signal?: AbortSignal,
): Promise<DirectoriesRead> {
  const hash = createHash('sha256');
  const all = new Map<string, Buffer>();
  const problems: CertificateProblem[] = [];
  const sets: CertificateSet[] = [];
  for (const directory of new Set(directories)) {
    const { contents, unreadable } = await readTogether((at) => readDirectory(directory, at, signal));
    for (const [name, content] of contents) {
      hash.update(content);
      all.set(join(directory, name), content);
    }
    const found = inspectCertificates(contents);
    for (const problem of [...unreadable, ...found.problems]) {
      problems.push({ ...problem, message: `${directory}: ${problem.message}` });
    }
    sets.push(...found.sets.map((set) => below(directory, set)));
  }
  return {
    digest: hash.digest('hex'),
    files: [...all.keys()],
    ...reported(problems),
    found: problems,
    sets,
    contents: all,
  };
}

function below(directory: string, set: CertificateSet): CertificateSet {
  if ('roots' in set) return { roots: join(directory, set.roots) };
  return { certificate: join(directory, set.certificate), key: join(directory, set.key) };
}

async function readDirectory(
  directory: string,
  at: (path: string) => Promise<string>,
  signal: AbortSignal | undefined,
): Promise<{ contents: Map<string, Buffer>; unreadable: readonly CertificateProblem[] }> {
  const contents = new Map<string, Buffer>();
  const listed = await certificateNames(directory);
  if ('problem' in listed) return { contents, unreadable: [unreadableAs(listed.problem)] };
  const unreadable: CertificateProblem[] = [];
  let bytes = 0;
  for (const name of listed.names.slice(0, mostFiles)) {
    signal?.throwIfAborted();
    const content = await readSmallFile(await at(join(directory, name)));
    if ('problem' in content) unreadable.push(problemOf(content.code, `${name} ${content.problem}`, { path: name }));
    else {
      contents.set(name, content);
      bytes += content.length;
    }
    if (bytes > mostBytes) break;
  }
  if (bytes > mostBytes)
    unreadable.push(unreadableAs(`certificate files must have at most ${mostBytes} bytes in total`));
  if (listed.names.length > mostFiles) {
    unreadable.push(
      unreadableAs(`directory must have at most ${mostFiles} certificate files, got ${listed.names.length}`),
    );
  }
  return { contents, unreadable };
}

function unreadableAs(message: string): CertificateProblem {
  return problemOf('CERTIFICATE_FILE_UNREADABLE', message);
}

/** Texts and codes, each once. */
function reported(problems: readonly CertificateProblem[]): Pick<CertificateReading, 'problems' | 'code'> {
  const texts = [...new Set(problems.map(({ message }) => message))];
  const codes = [...new Set(problems.map(({ code }) => code))];
  return { problems: texts, ...(codes.length > 0 && { code: codes.join(', ') }) };
}

/** A directory that is missing may still come. */
async function certificateNames(directory: string): Promise<{ names: string[] } | { problem: string }> {
  try {
    const names = await readdir(directory);
    return { names: names.filter((name) => certificateFile.test(name) && !kubernetesInternal.test(name)).sort() };
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return { names: [] };
    return { problem: `cannot be read: ${messageOf(error).split(', ', 1)[0]}` };
  }
}

/** Files that are replaced one by one need a moment to be of one piece. */
const readings = 3;

/**
 * The digest effect of the cert-watcher. With `judge`, Envoy says whether it takes the files: those that were read, not what
 * became of them meanwhile. Never rejects but when it is given up, which the chart does when it has taken too long.
 */
export function readCertificates(judge: CertificateJudge, log: Logger, turns: FileTurns) {
  return fromPromise<CertificateReading, { directories: string[]; judge: boolean }>(async ({ input, signal }) => {
    const { directories } = input;
    const digest = (): Promise<DirectoriesRead> => turns.ask(() => digestDirectories(directories, signal), signal);
    let read = await digest();
    if (!input.judge) {
      // Whether an Envoy is started with them is not known here: one that runs may have been adopted.
      if (read.problems.length > 0) {
        log.warn('certificates.invalid', { code: read.code, reason: read.problems.join('; ') });
      }
      return outcome(read);
    }
    for (let times = 1; times <= readings; times++) {
      const { problems, notJudged } = await judged(read, judge, signal);
      const after = await digest();
      if (after.digest === read.digest) return outcome(read, problems, notJudged);
      read = after;
    }
    return outcome(read, [unreadableAs('certificate files keep changing while they are read')]);
  });
}

function outcome(
  { digest, files, found }: DirectoriesRead,
  more: readonly CertificateProblem[] = [],
  notJudged?: string,
): CertificateReading {
  return {
    digest,
    files,
    ...reported([...found, ...more]),
    ...(notJudged !== undefined && { notJudged }),
  };
}

/** What is wrong already needs no judge. */
async function judged(
  { sets, problems, contents }: DirectoriesRead,
  judge: CertificateJudge,
  signal: AbortSignal,
): Promise<{ problems: CertificateProblem[]; notJudged?: string }> {
  if (sets.length === 0 || problems.length > 0) return { problems: [] };
  const refused: CertificateProblem[] = [];
  try {
    for (const { set, verdict } of await judge(sets, signal)) {
      if (verdict.is === 'not known') return { problems: [], notJudged: verdict.why };
      const file = 'roots' in set ? set.roots : set.certificate;
      const blocks = describeCertificates(contents.get(file) ?? Buffer.alloc(0));
      const message = `Envoy rejects ${file}: ${plain(verdict.why)}${blocks === '' ? '' : ` (${blocks})`}`;
      refused.push(problemOf('CERTIFICATE_REJECTED', message, { path: file }));
    }
  } catch (error) {
    return { problems: [], notJudged: messageOf(error) };
  }
  return { problems: refused };
}

/** Envoy tells first that it was reading its configuration, which is ours. */
const plain = (why: string): string => why.replace(/^error initializing configuration '.*?': /, '');

const pollMs = 100;

/**
 * The wait effect of the cert-watcher: looks for all files, and says what it sees at once and whenever that
 * changes. The chart says who is told, and when it is over.
 */
export function waitForFiles(turns: FileTurns) {
  return fromCallback<{ type: never }, { files: string[] }>(({ input, sendBack }) => {
    const stop = new AbortController();
    void lookForFiles(turns, input.files, stop.signal, sendBack);
    return () => stop.abort();
  });
}

async function lookForFiles(
  turns: FileTurns,
  files: readonly string[],
  stopped: AbortSignal,
  tell: (event: FilesPending) => void,
): Promise<void> {
  let told = '';
  while (!stopped.aborted) {
    const event = await turns.ask(() => whichAreMissing(files), stopped).catch(() => undefined);
    if (event === undefined || stopped.aborted) return;
    const seen = JSON.stringify(event);
    if (seen !== told) tell(event);
    told = seen;
    await sleep(pollMs, undefined, { signal: stopped }).catch(() => {});
  }
}

/** File after file: what hangs holds one thread. */
async function whichAreMissing(files: readonly string[]): Promise<FilesPending> {
  const problems: (string | undefined)[] = [];
  for (const file of files) problems.push(await whyUnreadable(file));
  return {
    type: 'files.pending',
    missing: files.filter((_, index) => problems[index] === 'missing'),
    unreachable: files.flatMap((file, index) => {
      const problem = problems[index];
      return problem === undefined || problem === 'missing' ? [] : [`${file}: ${problem}`];
    }),
  };
}

async function whyUnreadable(file: string): Promise<string | undefined> {
  try {
    await stat(file);
    return undefined;
  } catch (error) {
    return isSystemError(error, 'ENOENT') ? 'missing' : messageOf(error).split(', ', 1)[0];
  }
}
