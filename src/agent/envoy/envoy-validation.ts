import { silentLogger } from '../../runtime/output/log.ts';
import { runForOutput } from '../../runtime/run-for-output.ts';
import { EnvoyOutput } from './output/envoy-log.ts';
import { type OutputChannel, openErrorChannel } from './output/output-channels.ts';
import { readLines } from './output/output-lines.ts';
import type { ScratchParent } from './scratch-folder.ts';

export interface ValidationEnvironment {
  readonly binary: string;
  readonly guard: readonly string[];
}

/** `not known` if Envoy could not run or did not finish; the configuration may be valid. */
export type ValidationResult =
  | { readonly is: 'taken' }
  | { readonly is: 'refused' | 'not known'; readonly why: string };

/** Validation takes 0.1 s, and up to 1 s on a busy host. */
const limitMs = 30_000;
const invalidConfigCode = 1;

export interface ValidationOptions {
  readonly signal: AbortSignal;
  readonly limitMs?: number;
  /** Folders for the temporary name of the stderr pipe, which Envoy opens if the configuration names /dev/stderr. */
  readonly scratch?: readonly ScratchParent[];
}

/** @throws ChartpilotError FILE_UNWRITABLE if no folder of `scratch` is writable */
export async function validateWithEnvoy(
  { binary, guard }: ValidationEnvironment,
  args: readonly string[],
  { signal, limitMs: timeout = limitMs, scratch }: ValidationOptions,
): Promise<ValidationResult> {
  const [file, ...commandArgs] = [...guard, binary, ...args];
  const errors: OutputChannel & { release(): void } =
    scratch === undefined ? { childEnd: 'pipe', stream: undefined, release: () => {} } : openErrorChannel(scratch);
  const subprocess = runForOutput(file!, commandArgs, {
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: errors.childEnd,
    buffer: false,
    timeout,
    cancelSignal: signal,
  });
  errors.release();
  const output = new EnvoyOutput(silentLogger, { now: () => 0 });
  const read = readLines(errors.stream ?? subprocess.nodeChildProcess.stderr, (line) => output.line(line));
  const result = await subprocess;
  await read;
  if (!result.failed) return { is: 'taken' };
  if (result.timedOut) return { is: 'not known', why: `envoy --mode validate did not finish within ${timeout} ms` };
  const reason = stripNoise(output.exitReason()) || (result.shortMessage ?? `exit code ${result.exitCode}`);
  return { is: result.exitCode === invalidConfigCode && !result.isTerminated ? 'refused' : 'not known', why: reason };
}

/** Removes the file name, which the caller knows, and the spaces and links by which Protobuf makes equal messages differ. */
function stripNoise(output: string): string {
  return output
    .replace(/^error initializing configuration '[^']*':? ?/, '')
    .replace(/ {2,}/g, ' ')
    .replace(/: goo\.gle\/debug\w+/g, '');
}
