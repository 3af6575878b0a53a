/**
 * Runs a benchmark in a mesh that is always stopped, also after Ctrl-C, and checks for leftover processes and files.
 */
import { basename } from 'node:path';
import { messageOf } from '../../src/runtime/errors.ts';
import { checkTraces } from '../harness/check-traces.ts';
import { Mesh, type MeshOptions } from '../harness/mesh.ts';

/** Exit code that a shell reports for a program that SIGINT ended (128 + 2). */
export const interruptedCode = 130;

export interface Bench {
  readonly mesh: Mesh;
  /** Registers a cleanup that runs before the mesh stops. */
  onEnd(end: () => Promise<unknown>): void;
}

export interface BenchEnd {
  /** One sentence per error of the run and per leftover process or file. */
  readonly problems: readonly string[];
  /** Traces that do not conform to the sequence diagrams, with the findings. */
  readonly refusedTraces: readonly string[];
}

export const print = (line: string): void => void process.stdout.write(`${line}\n`);

/**
 * Runs a benchmark in a new mesh whose programs are not started yet. Exits the process after an interruption.
 *
 * @param run stores its results outside of the promise, so that a later error does not lose them.
 */
export async function runBench(options: MeshOptions, run: (bench: Bench) => Promise<void>): Promise<BenchEnd> {
  const interrupted = interruption();
  const mesh = await Mesh.create(options);
  const cleanups: (() => Promise<unknown>)[] = [];
  const pendingRun = run({ mesh, onEnd: (end) => void cleanups.push(end) }).then(
    () => [],
    (error: unknown) => [messageOf(error)],
  );
  const errors = await Promise.race([pendingRun, interrupted]);
  await Promise.all(cleanups.map((end) => end()));
  const leftovers = await mesh.stop({ keepDirectory: true });
  if (errors === 'interrupted') {
    mesh.remove();
    for (const line of leftovers) print(`left behind: ${line}`);
    process.exit(interruptedCode);
  }
  const refusedTraces = (await Promise.all(mesh.traceFiles.map(refusal))).flat();
  const problems = [...errors, ...leftovers.map((line) => `left behind: ${line}`)];
  if (problems.length + refusedTraces.length === 0) mesh.remove();
  else print(`configuration, logs and traces are in ${mesh.root}`);
  return { problems, refusedTraces };
}

/** Exits with the code of the benchmark, or with 2 if it threw an error. */
export async function exitWith(main: () => Promise<number>): Promise<never> {
  try {
    process.exit(await main());
  } catch (error) {
    print(messageOf(error));
    process.exit(2);
  }
}

/** Resolves at the first signal to stop. A second signal kills all started programs and exits immediately. */
export function interruption(): Promise<'interrupted'> {
  const { promise, resolve } = Promise.withResolvers<'interrupted'>();
  let hasSignal = false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (hasSignal) process.exit(interruptedCode);
      hasSignal = true;
      print('stopping everything; press again to kill it');
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
 * Parses a flag of the command line as an integer >= 1.
 *
 * @throws Error that names the flag.
 */
export function integerFlag(flag: string, text: string | undefined, fallback: number): number {
  const value = text === undefined ? fallback : Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${flag}: expected 1, 2, 3, …, got ${text}`);
  return value;
}
