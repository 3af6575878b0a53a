import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fromCallback, fromPromise } from 'xstate';
import type { FilesPending } from '../../../machines/agent/protocol.ts';
import { type CertificateProblem, problemOf } from '../../identity/certificate-problem.ts';
import { isSystemError, messageOf } from '../../runtime/errors.ts';
import type { FileTurns } from '../../runtime/files/file-turns.ts';
import { readConsistently } from '../../runtime/files/read-together.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { type CertificateSet, describeCertificates, inspectCertificates } from './certificate-problems.ts';
import { readSmallFile } from './certificate-reading.ts';
import type { CertificateValidator } from './certificate-validation.ts';

export const certificateFile = /\.(pem|crt|key)$/;
export const kubernetesInternal = /^\.\./;

export interface CertificateFilesContent {
  readonly digest: string;
  readonly files: string[];
  readonly problems: string[];
  readonly code?: string;
  readonly notValidated?: string;
}

interface DirectoriesContent extends CertificateFilesContent {
  readonly foundProblems: readonly CertificateProblem[];
  readonly sets: readonly CertificateSet[];
  readonly contents: ReadonlyMap<string, Buffer>;
}

/** A larger directory does not contain only certificates. */
export const maxFiles = 1_000;
const maxBytes = 64 * 1024 * 1024;

/** Skips and reports unreadable files and directories; rejects only if aborted. */
export async function digestDirectories(
  directories: readonly string[],
  signal?: AbortSignal,
): Promise<DirectoriesContent> {
  const hash = createHash('sha256');
  const contentByPath = new Map<string, Buffer>();
  const problems: CertificateProblem[] = [];
  const certificateSets: CertificateSet[] = [];
  for (const directory of new Set(directories)) {
    const { contents, unreadable } = await readConsistently((resolvePath) =>
      readDirectory(directory, resolvePath, signal),
    );
    for (const [name, content] of contents) {
      hash.update(content);
      contentByPath.set(join(directory, name), content);
    }
    const inspection = inspectCertificates(contents);
    for (const problem of [...unreadable, ...inspection.problems]) {
      problems.push({ ...problem, message: `${directory}: ${problem.message}` });
    }
    certificateSets.push(...inspection.sets.map((set) => setInDirectory(directory, set)));
  }
  return {
    digest: hash.digest('hex'),
    files: [...contentByPath.keys()],
    ...problemFields(problems),
    foundProblems: problems,
    sets: certificateSets,
    contents: contentByPath,
  };
}

function setInDirectory(directory: string, set: CertificateSet): CertificateSet {
  if ('roots' in set) return { roots: join(directory, set.roots) };
  return { certificate: join(directory, set.certificate), key: join(directory, set.key) };
}

async function readDirectory(
  directory: string,
  resolvePath: (path: string) => Promise<string>,
  signal: AbortSignal | undefined,
): Promise<{ contents: Map<string, Buffer>; unreadable: readonly CertificateProblem[] }> {
  const contents = new Map<string, Buffer>();
  const fileNames = await certificateNames(directory);
  if ('problem' in fileNames) return { contents, unreadable: [unreadableProblem(fileNames.problem)] };
  const unreadableProblems: CertificateProblem[] = [];
  let bytes = 0;
  for (const name of fileNames.names.slice(0, maxFiles)) {
    signal?.throwIfAborted();
    const content = await readSmallFile(await resolvePath(join(directory, name)));
    if ('problem' in content)
      unreadableProblems.push(problemOf(content.code, `${name} ${content.problem}`, { path: name }));
    else {
      contents.set(name, content);
      bytes += content.length;
    }
    if (bytes > maxBytes) break;
  }
  if (bytes > maxBytes)
    unreadableProblems.push(unreadableProblem(`certificate files must have at most ${maxBytes} bytes in total`));
  if (fileNames.names.length > maxFiles) {
    unreadableProblems.push(
      unreadableProblem(`directory must have at most ${maxFiles} certificate files, got ${fileNames.names.length}`),
    );
  }
  return { contents, unreadable: unreadableProblems };
}

function unreadableProblem(message: string): CertificateProblem {
  return problemOf('CERTIFICATE_FILE_UNREADABLE', message);
}

function problemFields(problems: readonly CertificateProblem[]): Pick<CertificateFilesContent, 'problems' | 'code'> {
  const messages = [...new Set(problems.map(({ message }) => message))];
  const codes = [...new Set(problems.map(({ code }) => code))];
  return { problems: messages, ...(codes.length > 0 && { code: codes.join(', ') }) };
}

/** A missing directory may appear later. */
async function certificateNames(directory: string): Promise<{ names: string[] } | { problem: string }> {
  try {
    const names = await readdir(directory);
    return { names: names.filter((name) => certificateFile.test(name) && !kubernetesInternal.test(name)).sort() };
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return { names: [] };
    return { problem: `cannot be read: ${messageOf(error).split(', ', 1)[0]}` };
  }
}

/** Reads several times, because files that are replaced one by one are inconsistent for a moment. */
const maxReadings = 3;

/** With `judge`, Envoy validates the files as they were read. Rejects only if the chart aborts it. */
export function readCertificates(validator: CertificateValidator, log: Logger, fileTurns: FileTurns) {
  return fromPromise<CertificateFilesContent, { directories: string[]; judge: boolean }>(async ({ input, signal }) => {
    const { directories } = input;
    const digest = (): Promise<DirectoriesContent> =>
      fileTurns.run(() => digestDirectories(directories, signal), signal);
    let filesContent = await digest();
    if (!input.judge) {
      // The message does not state whether Envoy starts with these files, because Envoy may have been adopted.
      if (filesContent.problems.length > 0) {
        log.warn('certificates.invalid', { code: filesContent.code, reason: filesContent.problems.join('; ') });
      }
      return validationOutcome(filesContent);
    }
    for (let readingCount = 1; readingCount <= maxReadings; readingCount++) {
      const { problems, notValidated } = await validateSets(filesContent, validator, signal);
      const finalDigest = await digest();
      if (finalDigest.digest === filesContent.digest) return validationOutcome(filesContent, problems, notValidated);
      filesContent = finalDigest;
    }
    return validationOutcome(filesContent, [unreadableProblem('certificate files keep changing while they are read')]);
  });
}

function validationOutcome(
  { digest, files, foundProblems }: DirectoriesContent,
  furtherProblems: readonly CertificateProblem[] = [],
  skipReason?: string,
): CertificateFilesContent {
  return {
    digest,
    files,
    ...problemFields([...foundProblems, ...furtherProblems]),
    ...(skipReason !== undefined && { notValidated: skipReason }),
  };
}

async function validateSets(
  { sets, problems, contents }: DirectoriesContent,
  validator: CertificateValidator,
  signal: AbortSignal,
): Promise<{ problems: CertificateProblem[]; notValidated?: string }> {
  if (sets.length === 0 || problems.length > 0) return { problems: [] };
  const refusedProblems: CertificateProblem[] = [];
  try {
    for (const { set, result } of await validator(sets, signal)) {
      if (result.is === 'not known') return { problems: [], notValidated: result.why };
      const file = 'roots' in set ? set.roots : set.certificate;
      const blocks = describeCertificates(contents.get(file) ?? Buffer.alloc(0));
      const message = `Envoy rejects ${file}: ${withoutConfigPrefix(result.why)}${blocks === '' ? '' : ` (${blocks})`}`;
      refusedProblems.push(problemOf('CERTIFICATE_REJECTED', message, { path: file }));
    }
  } catch (error) {
    return { problems: [], notValidated: messageOf(error) };
  }
  return { problems: refusedProblems };
}

/** Removes Envoy's prefix about the generated configuration. */
const withoutConfigPrefix = (rawMessage: string): string =>
  rawMessage.replace(/^error initializing configuration '.*?': /, '');

const pollMs = 100;

/** Reports missing files immediately and after each change, until the chart stops the actor. */
export function waitForFiles(fileTurns: FileTurns) {
  return fromCallback<{ type: never }, { files: string[] }>(({ input, sendBack }) => {
    const stop = new AbortController();
    void reportMissingFiles(fileTurns, input.files, stop.signal, sendBack);
    return () => stop.abort();
  });
}

async function reportMissingFiles(
  fileTurns: FileTurns,
  files: readonly string[],
  stopSignal: AbortSignal,
  report: (event: FilesPending) => void,
): Promise<void> {
  let lastReport = '';
  while (!stopSignal.aborted) {
    const event = await fileTurns.run(() => missingFilesOf(files), stopSignal).catch(() => undefined);
    if (event === undefined || stopSignal.aborted) return;
    const serializedEvent = JSON.stringify(event);
    if (serializedEvent !== lastReport) report(event);
    lastReport = serializedEvent;
    await sleep(pollMs, undefined, { signal: stopSignal }).catch(() => {});
  }
}

/** Sequential, so that a call that hangs blocks one thread. */
async function missingFilesOf(files: readonly string[]): Promise<FilesPending> {
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
