/** Envoy's own judgement of a configuration: `--mode validate` opens no port, takes no base id, needs no shared memory. */

import { runForOutput } from '../../runtime/asked-program.ts';
import { silentLogger } from '../../runtime/output/log.ts';
import { EnvoyOutput } from './output/envoy-log.ts';
import { type OutputChannel, openErrorChannel } from './output/output-channels.ts';
import { readLines } from './output/output-lines.ts';
import type { ScratchParent } from './scratch-folder.ts';

export interface ValidationEnvironment {
  /** Path of the Envoy binary. */
  readonly binary: string;
  readonly guard: readonly string[];
}

/** `not known`: Envoy could not be asked, or did not answer. That says nothing of what it was asked. */
export type Verdict = { readonly is: 'taken' } | { readonly is: 'refused' | 'not known'; readonly why: string };

/** A judgement takes 0.1 s, on a busy host a second. */
const limitMs = 30_000;
/** What Envoy ends with when it has read its configuration and does not take it. */
const refusalCode = 1;

export interface ValidationOptions {
  /** Ends the judgement, which then says nothing. */
  readonly signal: AbortSignal;
  readonly limitMs?: number;
  /**
   * For a configuration that may name /dev/stderr, which Envoy then opens: its errors go through a pipe that has a name
   * there for a moment. Absent: through a plain one.
   */
  readonly scratch?: readonly ScratchParent[];
}

/**
 * @param args of Envoy, with `--mode validate` among them
 * @throws ChartpilotError FILE_UNWRITABLE when there is no place in `scratch`
 */
export async function validateWithEnvoy(
  { binary, guard }: ValidationEnvironment,
  args: readonly string[],
  { signal, limitMs: timeout = limitMs, scratch }: ValidationOptions,
): Promise<Verdict> {
  const [file, ...words] = [...guard, binary, ...args];
  const errors: OutputChannel & { release(): void } =
    scratch === undefined ? { childEnd: 'pipe', stream: undefined, release: () => {} } : openErrorChannel(scratch);
  const subprocess = runForOutput(file!, words, {
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
  const why = withoutNoise(output.lastWords()) || (result.shortMessage ?? `exit code ${result.exitCode}`);
  return { is: result.exitCode === refusalCode && !result.isTerminated ? 'refused' : 'not known', why };
}

/** Without the file that the caller knows. Protobuf varies the spaces of its messages and adds a link, so that equal ones differ. */
function withoutNoise(words: string): string {
  return words
    .replace(/^error initializing configuration '[^']*':? ?/, '')
    .replace(/ {2,}/g, ' ')
    .replace(/: goo\.gle\/debug\w+/g, '');
}
