/** The demo: `npm start`, `npm start -- --check`, `npm start -- --check --delta`. */
import { parseArgs } from 'node:util';
import { explainError } from '../../src/runtime/errors.ts';
import { isFree } from '../harness/free-ports.ts';
import { Mesh, type MeshOptions } from '../harness/mesh.ts';
import { examplePorts } from '../harness/mesh-directory.ts';
import { checkEnd } from './check-end.ts';
import { certificateLifetime } from './check-identity.ts';
import { pageFinding, startDemoPage } from './demo-page.ts';
import { mainActors, printEvents } from './event-lines.ts';
import { duration, formatFindings } from './findings.ts';
import { checkRunningMesh } from './run-check.ts';
import { interruptedCode, interruption, print, runWithMesh } from './session.ts';
import { thingsToTry } from './things-to-try.ts';

const usage = `Usage: npm start -- [--check] [--delta] [--verbose]

Run a control plane, a gateway and a sidecar with their agents and real Envoys, and two versions of a sample service, on
loopback. Print the state changes of the main statecharts, the address of the debugger, and commands to try.

  --check    make each of these changes under load, measure, and exit with 0 if all results are as expected
  --delta    use delta xDS instead of state of the world
  --verbose  print the state changes of all statecharts
`;

/** Short, so that a user sees a restart complete; long enough for responses that take 3 s. */
const times = { watchDelayMs: 500, drainMs: 2_000, parentShutdownMs: 9_000, terminationDrainMs: 1_000 };

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      check: { type: 'boolean' },
      delta: { type: 'boolean' },
      verbose: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) {
    process.stdout.write(usage);
    return 0;
  }
  const options: MeshOptions = { ...times, mutualTls: true, delta: values.delta === true };
  return values.check === true
    ? check({ ...options, env: { SECRET_TTL: certificateLifetime } })
    : show(options, values.verbose === true);
}

/** Runs until a signal, and prints state changes. */
async function show(options: MeshOptions, isVerbose: boolean): Promise<number> {
  const interrupted = interruption();
  const ports = (await Promise.all(Object.values(examplePorts).map(isFree))).every(Boolean) ? examplePorts : undefined;
  const mesh = await Mesh.create({ ...options, ...(ports !== undefined && { ports }) });
  print('starting: control plane, gateway, sidecar, two versions of the sample service …');
  return runWithMesh(mesh, async () => {
    for (const name of ['pilot-discovery', 'gateway', 'sidecar'] as const) {
      printEvents(name, mesh.traceFileOf(name), print, isVerbose ? undefined : mainActors);
    }
    await Promise.race([mesh.startAll(), interrupted]);
    if (interrupted.wasInterrupted) return interruptedCode;
    const page = await startDemoPage(mesh);
    print(thingsToTry(mesh, page.address));
    const programs = [mesh.discovery!, mesh.gateway!, mesh.sidecar!].map(({ program }) => program);
    const programEnds = programs.map(async (program) => program.exited.then(() => program.hopeless()));
    const failure = await Promise.race([interrupted, ...programEnds]);
    await page.close();
    print(
      failure === undefined
        ? '\nstopping all programs (Ctrl-C again: at once)'
        : `\n${failure}\nstopping the other programs`,
    );
    return failure === undefined ? 0 : 1;
  });
}

/** Applies the suggested changes itself. */
async function check(options: MeshOptions): Promise<number> {
  const interrupted = interruption();
  const startedAt = performance.now();
  const elapsed = (): string => duration(performance.now() - startedAt);
  const progress = (line: string): void => print(`${elapsed().padStart(7)}  ${line}`);
  const mesh = await Mesh.create(options);
  return runWithMesh(mesh, async () => {
    progress('starting: control plane, gateway, sidecar, two versions of the sample service');
    await Promise.race([mesh.startAll(), interrupted]);
    const firstResponse = elapsed();
    const page = await startDemoPage(mesh);
    const findings = await Promise.race([checkRunningMesh(mesh, progress), interrupted]);
    // Runs after all restarts, so that every program has records.
    const pageResult = await pageFinding(page);
    await page.close();
    if (findings === undefined) return interruptedCode;
    progress('stopping all programs, checking traces');
    findings.unshift({
      check: 'a response through every proxy',
      seen: `after ${firstResponse}`,
      expected: 'a response',
      ok: true,
    });
    findings.push(pageResult, ...(await checkEnd(mesh)));
    print(`\n${formatFindings(findings)} (${options.delta === true ? 'delta' : 'state of the world'}, ${elapsed()})`);
    return findings.every(({ ok }) => ok) ? 0 : 1;
  });
}

try {
  process.exit(await main());
} catch (error) {
  print(explainError(error));
  process.exit(1);
}
