/** Runs a benchmark without a mesh of agents: programs in a separate folder, which are always stopped. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { messageOf } from '../../src/runtime/errors.ts';
import { leftovers, testRunVariable } from '../harness/host-processes.ts';
import { Program } from '../harness/program.ts';
import { interruptedCode, interruption, print } from './bench-run.ts';

export interface Programs {
  /** Folder for files of the programs; removed after a successful run. */
  readonly root: string;
  /** Environment that each program needs: it identifies leftover processes. */
  readonly env: NodeJS.ProcessEnv;
  /** Starts an executable, which is stopped at the end if still running. */
  start(name: string, executable: string, args: readonly string[], env?: NodeJS.ProcessEnv): Program;
  /** Registers an additional cleanup. */
  onEnd(end: () => Promise<unknown>): void;
}

/**
 * Runs a benchmark. Exits the process after an interruption.
 *
 * @returns one sentence per error of the run and per leftover process
 */
export async function runWithPrograms(run: (programs: Programs) => Promise<void>): Promise<string[]> {
  const interrupted = interruption();
  const testRun = randomUUID();
  const root = mkdtempSync(join(tmpdir(), 'chartpilot-bench-'));
  const cleanups: (() => Promise<unknown>)[] = [];
  const env = { ...process.env, [testRunVariable]: testRun };
  let startedCount = 0;
  const programs: Programs = {
    root,
    env,
    onEnd: (end) => void cleanups.push(end),
    start: (name, executable, args, extraEnv = {}) => {
      const logFile = join(root, `${++startedCount}-${name}.log`);
      const program = Program.run(name, executable, { args, env: { ...env, ...extraEnv }, cwd: root, logFile });
      cleanups.push(() => program.stop({ deadlineMs: 5_000 }));
      return program;
    },
  };
  const programRun = run(programs).then(
    () => [],
    (error: unknown) => [messageOf(error)],
  );
  const errors = await Promise.race([programRun, interrupted]);
  await Promise.all(cleanups.map((end) => end()));
  const leftoverErrors = leftovers(testRun, new Set()).map((line) => `left behind: ${line}`);
  if (errors === 'interrupted') {
    rmSync(root, { recursive: true });
    for (const line of leftoverErrors) print(line);
    process.exit(interruptedCode);
  }
  if (errors.length + leftoverErrors.length === 0) rmSync(root, { recursive: true });
  else print(`configuration and logs are in ${root}`);
  return [...errors, ...leftoverErrors];
}
