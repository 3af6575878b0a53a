/** What a demo's run has around it: signals, and an end that leaves nothing behind. */
import { explainError } from '../../src/runtime/errors.ts';

export interface StartedMesh {
  /** Where its configuration, logs and traces are. */
  readonly root: string;
  /** @returns what is left on the host although it should not be */
  stop(options: { readonly keepDirectory: boolean }): Promise<string[]>;
  remove(): void;
}

/** As a shell reports a program that was ended by Ctrl-C before it had done its work. */
export const interruptedCode = 130;

export const print = (line: string): void => void process.stdout.write(`${line}\n`);

/** Whatever happens meanwhile: the mesh is ended, and its directory is kept only when something was wrong. @returns the exit code */
export async function endingMesh(mesh: StartedMesh, run: () => Promise<number>): Promise<number> {
  let exitCode = 1;
  try {
    exitCode = await run();
  } catch (error) {
    print(explainError(error));
  }
  const left = await mesh.stop({ keepDirectory: true });
  for (const line of left) print(`left behind: ${line}`);
  if (left.length > 0) exitCode = 1;
  if (exitCode === 0 || exitCode === interruptedCode) mesh.remove();
  else print(`directory of configuration, logs and traces: ${mesh.root}`);
  return exitCode;
}

/** Resolves at the first signal to end; a second one ends at once, with everything that was started. */
export function interruption(): Promise<undefined> & { seen: boolean } {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const interrupted = Object.assign(promise, { seen: false });
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (interrupted.seen) process.exit(interruptedCode);
      interrupted.seen = true;
      resolve(undefined);
    });
  }
  return interrupted;
}
