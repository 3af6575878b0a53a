/** The check of another Envoy, before anything is changed for it: who it is, and whether it would take over from the one that runs. */
import { closeSync, fstatSync } from 'node:fs';
import { fromPromise } from 'xstate';
import type { BinaryCheckOrder, BinaryCheckResult } from '../../../machines/agent/files/binary-watcher.machine.ts';
import { envoySupport, envoyVersionIn } from '../../model/node/envoy-build.ts';
import { askProgram } from '../../runtime/asked-program.ts';
import { messageOf } from '../../runtime/errors.ts';
import { whyNotExecutable } from '../../runtime/files/executable.ts';
import type { FileTurns } from '../../runtime/files/file-turns.ts';
import { digestOf, type EnvoyBinaries, type FoundBinary, findBinary, heldPath } from '../envoy/envoy-binaries.ts';
import { maxVersionOutput, releaseIn } from '../envoy/envoy-release.ts';
import type { Verdict } from '../envoy/envoy-validation.ts';

export interface BinaryCheckEnvironment {
  readonly binaries: EnvoyBinaries;
  /** The turns in which the file is read. */
  readonly turns: FileTurns;
  /** What an Envoy is started with, but for its bootstrap: it has to take all of it. */
  readonly words: readonly string[];
  readonly hotRestart: boolean;
  /** Lets the Envoy at a path judge the bootstrap that it would be started with. */
  readonly validate: (path: string, signal: AbortSignal) => Promise<Verdict>;
}

/** Reading flags takes Envoy a tenth of a second, on a busy host a second. */
const answerLimitMs = 30_000;

/** The check effect. */
export function checkBinary(environment: BinaryCheckEnvironment) {
  return fromPromise<BinaryCheckResult, BinaryCheckOrder>(({ input: { path }, signal }) =>
    check(environment, path, signal).catch((error: unknown) => ({ unknown: messageOf(error) })),
  );
}

async function check(
  environment: BinaryCheckEnvironment,
  path: string,
  signal: AbortSignal,
): Promise<BinaryCheckResult> {
  const { binaries, turns } = environment;
  const found = await turns.ask(async () => openedAt(path), signal);
  if ('refused' in found) return found;
  const held = binaries.nameOf(found.stats);
  // This binary has been judged before, or runs.
  if (held !== undefined) {
    closeSync(found.fd);
    return { binary: held, description: found.realPath };
  }
  let isKept = false;
  try {
    const digest = await turns.ask(() => digestOf(found.fd, signal), signal);
    if (hasChanged(found)) return { refused: `${found.realPath} is still being written` };
    const name = await turns.ask(() => binaries.nameOfDigest(digest, signal), signal);
    const judged = name === undefined ? await judge(environment, found, signal) : { version: '' };
    if ('refused' in judged) return judged;
    binaries.pin(name ?? digest, digest, found);
    isKept = true;
    return { binary: name ?? digest, description: `${judged.version} (sha256 ${digest}) ${found.realPath}`.trim() };
  } finally {
    if (!isKept) closeSync(found.fd);
  }
}

function openedAt(path: string): FoundBinary | { refused: string } {
  const why = whyNotExecutable(path);
  if (why !== undefined) return { refused: `${path} ${why}` };
  try {
    return findBinary(path);
  } catch (error) {
    return { refused: `${path}: ${messageOf(error)}` };
  }
}

function hasChanged({ fd, stats }: FoundBinary): boolean {
  const now = fstatSync(fd, { bigint: true });
  return now.size !== stats.size || now.mtimeNs !== stats.mtimeNs;
}

/** From the cheapest question to the dearest; the first that is not answered well is told. */
async function judge(
  { binaries, words, hotRestart, validate }: BinaryCheckEnvironment,
  { fd, realPath }: FoundBinary,
  signal: AbortSignal,
): Promise<{ refused: string } | { version: string }> {
  const path = heldPath(fd);
  const version = await ask(path, ['--version'], signal);
  const release = releaseIn(version.said);
  if (version.exitCode !== 0 || release === undefined) {
    return { refused: `${realPath} --version printed no Envoy version: ${wordsOf(version)}` };
  }
  const who = `${realPath} (Envoy ${release})`;
  const compatibility = await ask(path, [...words, '--hot-restart-version'], signal);
  if (compatibility.exitCode !== 0) {
    return { refused: `${who} rejects the Envoy command line of this agent: ${wordsOf(compatibility)}` };
  }
  if (hotRestart) {
    const running = await ask(binaries.newestPath, [...words, '--hot-restart-version'], signal);
    // A running Envoy that does not even say its version serves nobody: there is nothing to take over.
    if (running.exitCode === 0 && running.said !== compatibility.said) {
      const differs = `hot restart version ${compatibility.said}, running Envoy has ${running.said}`;
      return { refused: `${who} cannot hot restart the running Envoy: ${differs}` };
    }
  }
  const verdict = await validate(path, signal);
  if (verdict.is === 'taken') return { version: described(release) };
  if (verdict.is === 'not known') throw new Error(`${who}: ${verdict.why}`);
  return { refused: `${who} rejects the bootstrap: ${verdict.why}` };
}

/** Shown where another binary is taken up. */
function described(release: string): string {
  const support = envoySupport(envoyVersionIn(release));
  return support === 'older' || support === 'newer' ? `${release}, ${support} than the supported versions` : release;
}

interface Answer {
  readonly exitCode: number | undefined;
  /** What was written to standard output and standard error: versions of Envoy differ in which they use. */
  readonly said: string;
  readonly problem: string;
}

async function ask(path: string, words: readonly string[], signal: AbortSignal): Promise<Answer> {
  const result = await askProgram(path, words, {
    all: true,
    stdin: 'ignore',
    maxBuffer: maxVersionOutput,
    timeout: answerLimitMs,
    cancelSignal: signal,
  });
  if (result.timedOut) throw new Error(`${words.at(-1)} did not finish within ${answerLimitMs} ms`);
  return { exitCode: result.exitCode, said: (result.all ?? '').trim(), problem: result.shortMessage ?? '' };
}

function wordsOf({ said, problem, exitCode }: Answer): string {
  const line = said.split('\n').findLast((one) => one.trim() !== '');
  return line ?? (problem === '' ? `exit code ${exitCode} without output` : problem);
}
