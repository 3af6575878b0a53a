/** Handles signals of a demo, and stops its mesh without leftovers. */
import { explainError } from '../../src/runtime/errors.ts';

export interface StartedMesh {
  /** Folder of configuration, logs and traces. */
  readonly root: string;
  /** @returns leftovers on the host */
  stop(options: { readonly keepDirectory: boolean }): Promise<string[]>;
  remove(): void;
}

/** Exit code that a shell reports for a program that SIGINT ended (128 + 2). */
export const interruptedCode = 130;

export const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** Always stops the mesh, and keeps its directory only after a failure. @returns the exit code */
export async function runWithMesh(mesh: StartedMesh, run: () => Promise<number>): Promise<number> {
  let exitCode = 1;
  try {
    exitCode = await run();
  } catch (error) {
    print(explainError(error));
  }
  const leftoverTexts = await mesh.stop({ keepDirectory: true });
  for (const line of leftoverTexts) print(`left behind: ${line}`);
  if (leftoverTexts.length > 0) exitCode = 1;
  if (exitCode === 0 || exitCode === interruptedCode) mesh.remove();
  else print(`directory of configuration, logs and traces: ${mesh.root}`);
  return exitCode;
}

/** Resolves at the first signal to stop. A second signal kills all started programs and exits immediately. */
export function interruption(): Promise<undefined> & { wasInterrupted: boolean } {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const interrupted = Object.assign(promise, { wasInterrupted: false });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (interrupted.wasInterrupted) process.exit(interruptedCode);
      interrupted.wasInterrupted = true;
      resolve(undefined);
    });
  }
  return interrupted;
}
