/** The frame of a benchmark: a mesh that is ended whatever happens, also by Ctrl-C, and a look at what is left. */
import { basename } from 'node:path';
import { messageOf } from '../../src/runtime/errors.ts';
import { checkTraces } from '../harness/check-traces.ts';
import { Mesh, type MeshOptions } from '../harness/mesh.ts';

/** As a shell reports a program that was ended by Ctrl-C before it had done its work. */
export const interruptedCode = 130;

export interface Bench {
  readonly mesh: Mesh;
  /** Registers what has to be ended before the mesh is. */
  onEnd(end: () => Promise<unknown>): void;
}

export interface BenchEnd {
  /** One sentence each: an error of the run, what is left behind, and why the run was not a clean one. */
  readonly problems: readonly string[];
  /** Traces that do not conform to the sequence diagrams, with what the check says. */
  readonly refusedTraces: readonly string[];
}

export const print = (line: string): void => void process.stdout.write(`${line}\n`);

/**
 * Runs a benchmark in a mesh of its own; its parts are not started yet. Exits the process when it was interrupted.
 *
 * @param run takes what it finds out to its caller itself, so that an error does not lose it.
 */
export async function runBench(options: MeshOptions, run: (bench: Bench) => Promise<void>): Promise<BenchEnd> {
  const interrupted = interruption();
  const mesh = await Mesh.create(options);
  const ends: (() => Promise<unknown>)[] = [];
  const running = run({ mesh, onEnd: (end) => void ends.push(end) }).then(
    () => [],
    (error: unknown) => [messageOf(error)],
  );
  const errors = await Promise.race([running, interrupted]);
  await Promise.all(ends.map((end) => end()));
  const left = await mesh.stop({ keepDirectory: true });
  if (errors === 'interrupted') {
    mesh.remove();
    for (const line of left) print(`left behind: ${line}`);
    process.exit(interruptedCode);
  }
  const refusedTraces = (await Promise.all(mesh.traceFiles.map(refusal))).flat();
  const problems = [...errors, ...left.map((line) => `left behind: ${line}`)];
  if (problems.length + refusedTraces.length === 0) mesh.remove();
  else print(`configuration, logs and traces are in ${mesh.root}`);
  return { problems, refusedTraces };
}

/** Ends this process with a benchmark's exit code: 2 when it could not be done at all. */
export async function exitWith(main: () => Promise<number>): Promise<never> {
  try {
    process.exit(await main());
  } catch (error) {
    print(messageOf(error));
    process.exit(2);
  }
}

/** Resolves at the first signal to end; a second one ends at once, with everything that was started. */
export function interruption(): Promise<'interrupted'> {
  const { promise, resolve } = Promise.withResolvers<'interrupted'>();
  let seen = false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (seen) process.exit(interruptedCode);
      seen = true;
      print('ending everything; once more to end at once');
      resolve('interrupted');
    });
  }
  return promise;
}

async function refusal(traceFile: string): Promise<string[]> {
  const { code, output } = await checkTraces([traceFile]);
  return code === 0 ? [] : [`${basename(traceFile)}:\n${output}`];
}

/**
 * Reads a flag of the command line as a whole number that is at least one.
 *
 * @throws Error that names the flag.
 */
export function wholeNumber(flag: string, text: string | undefined, fallback: number): number {
  const value = text === undefined ? fallback : Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${flag}: expected 1, 2, 3, …, got ${text}`);
  return value;
}
