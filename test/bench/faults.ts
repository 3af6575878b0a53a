/** `npm run bench:faults`: cost of faults with pilot-agent and with a plain supervisor; see the usage. */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Mesh } from '../harness/mesh.ts';
import type { ClientPlan } from '../load/plan.ts';
import { type Bench, exitWith, print, runBench } from './bench-run.ts';
import { type BenchFault, faults, type InjectedFault, inFlight, servesCertificate } from './fault-list.ts';
import { costOf, type FaultResult, formatFaultTable, shortfalls } from './fault-table.ts';
import {
  type EnvoyCommand,
  type FaultSubject,
  plainBootstrap,
  plainCommand,
  startAgent,
  startPlainSupervisor,
  subjectNames,
} from './subject.ts';

const usage = `Usage: npm run bench:faults -- [--only FAULT,…]

Injects each fault into a gateway under load, once with pilot-agent and once with a plain supervisor that only restarts the same
Envoy. Prints the cost: failed and total requests, the longest time without a successful new connection, and the time from the
fault until the newest certificate was served without interruption.

  --only FAULT,…   ${faults.map(({ name }) => name).join(', ')}

Exit code 1 when a fault costs pilot-agent more than its goal (fault-list.ts), a trace does not conform to the sequence
diagrams, the run was interrupted, or a process or file was left behind.
`;

const times = { watchDelayMs: 100, drainMs: 1_000, parentShutdownMs: 4_000, terminationDrainMs: 1_000 };
const warmUpMs = 1_500;
const observeLimitMs = 60_000;
const probeEveryMs = 20;
/** A state that lasts this long counts as steady. */
const steadyMs = 2_000;
const loadLimitMs = 150_000;

/** No client retries. After a failure a client pauses for 20 ms. */
const newClients: readonly ClientPlan[] = [{ kind: 'new', count: 2, pauseMs: 10 }];
const manyNewClients: readonly ClientPlan[] = [{ kind: 'new', count: 8 }];
const persistentClients: readonly ClientPlan[] = [
  { kind: 'ka', count: 2, pauseMs: 5 },
  { kind: 'slow', count: 1, pauseMs: 1_000 },
  { kind: 'h2', count: 1, streams: 2, pauseMs: 5 },
  { kind: 'stream', count: 2, path: '/stream?seconds=1' },
];

async function measure(
  { mesh, onEnd }: Bench,
  chosenFaults: readonly BenchFault[],
  results: FaultResult[],
): Promise<void> {
  await Promise.all([mesh.startSamples(), mesh.startDiscovery()]);
  const command = await commandOfEnvoy(mesh);
  for (const fault of chosenFaults) {
    const agent = await startAgent(mesh, fault.customBootstrap && plainBootstrap(mesh));
    results.push(await injectFault(fault, mesh, agent));
    const plain = await startPlainSupervisor(mesh, command, times.watchDelayMs, (program) =>
      onEnd(() => program.stop()),
    );
    results.push(await injectFault(fault, mesh, plain));
  }
}

async function commandOfEnvoy(mesh: Mesh): Promise<EnvoyCommand> {
  const agent = await startAgent(mesh);
  const command = plainCommand(mesh, agent);
  await agent.program.stop();
  return command;
}

/** Injects one fault into one subject, and then stops the subject, so that no state affects the next fault. */
async function injectFault(fault: BenchFault, mesh: Mesh, subject: FaultSubject): Promise<FaultResult> {
  const plan = { target: mesh.httpsTarget, maxDurationMs: loadLimitMs };
  // These clients run separately: their timeline shows when new connections got no response.
  const clients = fault.load === undefined ? newClients : manyNewClients;
  const newConnections = await mesh.startLoad({ ...plan, clients });
  const keptLoad = await mesh.startLoad({ ...plan, clients: persistentClients });
  try {
    await sleep(warmUpMs);
    const inflicted = await fault.inject(mesh, subject);
    const servedAfterMs = await observe(fault, mesh, subject, inflicted);
    const { timeline } = await newConnections.report();
    const cost = costOf(await Promise.all([keptLoad.stop(), newConnections.stop()]), timeline);
    print(`${fault.title}, ${subject.name}: ${cost.failed} failed of ${cost.total}`);
    const note = inflicted.note === undefined ? {} : { note: inflicted.note };
    return { fault: fault.title, subject: subject.name, ...cost, servedAfterMs, ...note };
  } finally {
    keptLoad.kill();
    newConnections.kill();
    await subject.program.stop();
    // The next subject needs the certificate that the fault removed.
    mesh.renewCertificate();
  }
}

/**
 * Waits until the newest certificate is served and the state is steady.
 *
 * @returns the time until it was served without interruption; `undefined` after the limit
 */
async function observe(
  { observeMs }: BenchFault,
  mesh: Mesh,
  subject: FaultSubject,
  { atMs, serialNumber }: InjectedFault,
): Promise<number | undefined> {
  const endMs = performance.now() + observeLimitMs;
  let servedSinceMs: number | undefined;
  for (let nowMs = performance.now(); nowMs < endMs; nowMs = performance.now()) {
    servedSinceMs = (await servesCertificate(mesh, serialNumber)) ? (servedSinceMs ?? nowMs) : undefined;
    const steady = servedSinceMs !== undefined && nowMs - servedSinceMs >= steadyMs;
    if (steady && nowMs >= atMs + observeMs && subject.envoys().length === 1) return servedSinceMs! - atMs;
    await sleep(probeEveryMs);
  }
  return undefined;
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { only: { type: 'string' }, help: { type: 'boolean', short: 'h' } } });
  if (values.help === true) {
    process.stdout.write(usage);
    return 0;
  }
  const names = values.only?.split(',') ?? faults.map(({ name }) => name);
  const unknownNames = names.filter((name) => !faults.some((fault) => fault.name === name));
  if (unknownNames.length > 0) throw new Error(`--only: there is no fault ${unknownNames.join(', ')}\n\n${usage}`);
  const selectedFaults = faults.filter(({ name }) => names.includes(name));
  const results: FaultResult[] = [];
  const { problems, refusedTraces } = await runBench({ sidecar: false, ...times }, (bench) =>
    measure(bench, selectedFaults, results),
  );
  print(`\n${formatFaultTable(results, subjectNames)}`);
  print(`\nat most ${inFlight} requests are in flight on one Envoy; times: ${JSON.stringify(times)}`);
  const missed = results
    .filter(({ subject }) => subject === 'pilot-agent')
    .flatMap((result) => shortfalls(result, selectedFaults.find(({ title }) => title === result.fault)?.goal ?? {}));
  const failureLines = [
    ...problems,
    ...refusedTraces.map((trace) => `deviates from the sequence diagrams: ${trace}`),
    ...missed,
  ];
  for (const problem of failureLines) print(`problem: ${problem}`);
  print(
    failureLines.length === 0
      ? `${selectedFaults.length} faults done, every goal reached, nothing left behind`
      : `${failureLines.length} problems`,
  );
  return failureLines.length === 0 ? 0 : 1;
}

await exitWith(main);
