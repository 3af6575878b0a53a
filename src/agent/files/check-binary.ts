import { closeSync, fstatSync } from 'node:fs';
import { fromPromise } from 'xstate';
import type { BinaryCheckOrder, BinaryCheckResult } from '../../../machines/agent/files/binary-watcher.machine.ts';
import { envoySupport, envoyVersionIn } from '../../model/node/envoy-build.ts';
import { messageOf } from '../../runtime/errors.ts';
import { notExecutableReason } from '../../runtime/files/executable.ts';
import type { FileTurns } from '../../runtime/files/file-turns.ts';
import { runForOutput } from '../../runtime/run-for-output.ts';
import { digestOf, type EnvoyBinaries, type OpenBinary, openBinary, openFilePath } from '../envoy/envoy-binaries.ts';
import { maxVersionOutput, parseRelease } from '../envoy/envoy-release.ts';
import type { ValidationResult } from '../envoy/envoy-validation.ts';

export interface BinaryCheckEnvironment {
  readonly binaries: EnvoyBinaries;
  readonly turns: FileTurns;
  /** The binary must accept all of these arguments; the bootstrap is not among them. */
  readonly envoyArguments: readonly string[];
  readonly hotRestart: boolean;
  readonly validate: (path: string, signal: AbortSignal) => Promise<ValidationResult>;
}

/** Envoy parses its flags in 0.1 s, and up to 1 s on a busy host. */
const runLimitMs = 30_000;

export function checkBinary(environment: BinaryCheckEnvironment) {
  return fromPromise<BinaryCheckResult, BinaryCheckOrder>(({ input: { path }, signal }) =>
    runCheck(environment, path, signal).catch((error: unknown) => ({ unknown: messageOf(error) })),
  );
}

async function runCheck(
  environment: BinaryCheckEnvironment,
  path: string,
  signal: AbortSignal,
): Promise<BinaryCheckResult> {
  const { binaries, turns } = environment;
  const openedBinary = await turns.run(async () => openedAt(path), signal);
  if ('refused' in openedBinary) return openedBinary;
  const pinnedName = binaries.nameOf(openedBinary.stats);
  if (pinnedName !== undefined) {
    closeSync(openedBinary.fd);
    return { binary: pinnedName, description: openedBinary.realPath };
  }
  let isPinned = false;
  try {
    const digest = await turns.run(() => digestOf(openedBinary.fd, signal), signal);
    if (hasChanged(openedBinary)) return { refused: `${openedBinary.realPath} is still being written` };
    const name = await turns.run(() => binaries.nameOfDigest(digest, signal), signal);
    const checkResult =
      name === undefined ? await checkCompatibility(environment, openedBinary, signal) : { version: '' };
    if ('refused' in checkResult) return checkResult;
    binaries.pin(name ?? digest, digest, openedBinary);
    isPinned = true;
    return {
      binary: name ?? digest,
      description: `${checkResult.version} (sha256 ${digest}) ${openedBinary.realPath}`.trim(),
    };
  } finally {
    if (!isPinned) closeSync(openedBinary.fd);
  }
}

function openedAt(path: string): OpenBinary | { refused: string } {
  const reason = notExecutableReason(path);
  if (reason !== undefined) return { refused: `${path} ${reason}` };
  try {
    return openBinary(path);
  } catch (error) {
    return { refused: `${path}: ${messageOf(error)}` };
  }
}

function hasChanged({ fd, stats }: OpenBinary): boolean {
  const currentStats = fstatSync(fd, { bigint: true });
  return currentStats.size !== stats.size || currentStats.mtimeNs !== stats.mtimeNs;
}

/** Runs checks in ascending order of cost and reports the first failure. */
async function checkCompatibility(
  { binaries, envoyArguments, hotRestart, validate }: BinaryCheckEnvironment,
  { fd, realPath }: OpenBinary,
  signal: AbortSignal,
): Promise<{ refused: string } | { version: string }> {
  const path = openFilePath(fd);
  const version = await runBinary(path, ['--version'], signal);
  const release = parseRelease(version.output);
  if (version.exitCode !== 0 || release === undefined) {
    return { refused: `${realPath} --version printed no Envoy version: ${outputText(version)}` };
  }
  const description = `${realPath} (Envoy ${release})`;
  const compatibility = await runBinary(path, [...envoyArguments, '--hot-restart-version'], signal);
  if (compatibility.exitCode !== 0) {
    return { refused: `${description} rejects the Envoy command line of this agent: ${outputText(compatibility)}` };
  }
  if (hotRestart) {
    const processResult = await runBinary(binaries.newestPath, [...envoyArguments, '--hot-restart-version'], signal);
    // Do not reject if the running Envoy does not report its version.
    if (processResult.exitCode === 0 && processResult.output !== compatibility.output) {
      const differenceText = `hot restart version ${compatibility.output}, running Envoy has ${processResult.output}`;
      return { refused: `${description} cannot hot restart the running Envoy: ${differenceText}` };
    }
  }
  const validation = await validate(path, signal);
  if (validation.is === 'taken') return { version: describeBinary(release) };
  if (validation.is === 'not known') throw new Error(`${description}: ${validation.why}`);
  return { refused: `${description} rejects the bootstrap: ${validation.why}` };
}

function describeBinary(release: string): string {
  const support = envoySupport(envoyVersionIn(release));
  return support === 'older' || support === 'newer' ? `${release}, ${support} than the supported versions` : release;
}

interface ProgramOutput {
  readonly exitCode: number | undefined;
  /** Versions of Envoy differ in whether they use stdout or stderr. */
  readonly output: string;
  readonly problem: string;
}

async function runBinary(path: string, args: readonly string[], signal: AbortSignal): Promise<ProgramOutput> {
  const result = await runForOutput(path, args, {
    all: true,
    stdin: 'ignore',
    maxBuffer: maxVersionOutput,
    timeout: runLimitMs,
    cancelSignal: signal,
  });
  if (result.timedOut) throw new Error(`${args.at(-1)} did not finish within ${runLimitMs} ms`);
  return { exitCode: result.exitCode, output: (result.all ?? '').trim(), problem: result.shortMessage ?? '' };
}

function outputText({ output, problem, exitCode }: ProgramOutput): string {
  const line = output.split('\n').findLast((text) => text.trim() !== '');
  return line ?? (problem === '' ? `exit code ${exitCode} without output` : problem);
}
