/** Runs a demo: starts a mesh, prints suggestions or checks it, and stops it. */
import { parseArgs } from 'node:util';
import { explainError } from '../../src/runtime/errors.ts';
import { printEvents } from './event-lines.ts';
import { type CheckFinding, duration, formatFindings } from './findings.ts';
import { interruptedCode, interruption, print, runWithMesh, type StartedMesh } from './session.ts';

/** A mesh whose programs may exit unexpectedly. */
interface DemoMesh extends StartedMesh {
  start(): Promise<unknown>;
  traceFileOf(name: string): string;
  /** Resolves when any program has exited. */
  readonly anyEnded: Promise<unknown>;
  /** @returns the reason why the mesh cannot continue */
  hopeless(): string | undefined;
}

export interface Demo<M extends DemoMesh> {
  readonly usage: string;
  /** First printed line. */
  readonly starting: string;
  /** Line that is printed when the mesh is ready. */
  readonly started: string;
  create(): Promise<M>;
  /** Programs whose state changes are printed. */
  readonly printed: readonly string[];
  /** Charts whose state changes are printed; all by default. */
  readonly charts?: Parameters<typeof printEvents>[3];
  check(mesh: M, progress: (line: string) => void): Promise<readonly CheckFinding[]>;
  /** Stops all programs and checks leftovers. */
  checkEnd(mesh: M): Promise<readonly CheckFinding[]>;
  /** Commands for another terminal. */
  thingsToTry(mesh: M): readonly string[];
}

/** Runs the demo and exits the process. */
export async function runDemo<M extends DemoMesh>(demo: Demo<M>): Promise<never> {
  try {
    process.exit(await exitCodeOf(demo));
  } catch (error) {
    print(explainError(error));
    process.exit(1);
  }
}

async function exitCodeOf<M extends DemoMesh>(demo: Demo<M>): Promise<number> {
  const { values } = parseArgs({ options: { check: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } } });
  if (values.help === true) {
    process.stdout.write(demo.usage);
    return 0;
  }
  const interrupted = interruption();
  const startedAt = performance.now();
  const elapsed = (): string => duration(performance.now() - startedAt);
  const mesh = await demo.create();
  print(demo.starting);
  return runWithMesh(mesh, async () => {
    if (values.check !== true) {
      for (const name of demo.printed) printEvents(name, mesh.traceFileOf(name), print, demo.charts);
    }
    await Promise.race([mesh.start(), interrupted]);
    if (interrupted.wasInterrupted) return interruptedCode;
    if (values.check !== true) return show(demo, mesh, interrupted);
    const first = { check: demo.started, seen: `after ${elapsed()}`, expected: 'a response', ok: true };
    const progress = (line: string): void => print(`${elapsed().padStart(7)}  ${line}`);
    const findings = await Promise.race([demo.check(mesh, progress), interrupted]);
    if (findings === undefined) return interruptedCode;
    progress('stopping all programs, checking traces');
    const all = [first, ...findings, ...(await demo.checkEnd(mesh))];
    print(`\n${formatFindings(all)} (${elapsed()})`);
    return all.every(({ ok }) => ok) ? 0 : 1;
  });
}

async function show<M extends DemoMesh>(demo: Demo<M>, mesh: M, interrupted: Promise<undefined>): Promise<number> {
  const lines = [
    `Directory of configuration, logs and traces: ${mesh.root}`,
    'Commands for another terminal:',
    ...demo.thingsToTry(mesh),
    'Ctrl-C stops all programs. Each line above and below is a state change.',
  ];
  print(`\n${lines.join('\n')}\n`);
  const failure = await Promise.race([interrupted, mesh.anyEnded.then(() => mesh.hopeless())]);
  print(
    failure === undefined
      ? '\nstopping all programs (Ctrl-C again: at once)'
      : `\n${failure}\nstopping the other programs`,
  );
  return failure === undefined ? 0 : 1;
}
