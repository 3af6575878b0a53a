/** `npm run bench:faults`: what faults cost with pilot-agent and with a plain supervisor; see the usage. */
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Mesh } from '../harness/mesh.ts';
import type { ClientPlan } from '../load/plan.ts';
import { type Bench, exitWith, print, runBench } from './bench-run.ts';
import { type Fault, faults, type Inflicted, inFlight, servesCertificate } from './fault-list.ts';
import { costOf, type FaultResult, formatFaultTable, shortfalls } from './fault-table.ts';
import {
  type EnvoyCommand,
  plainBootstrap,
  plainCommand,
  type Subject,
  startAgent,
  startPlainSupervisor,
  subjectNames,
} from './subject.ts';

const usage = `Usage: npm run bench:faults -- [--only FAULT,…]

Does each fault to a gateway under load, once with pilot-agent, once with a plain supervisor that just restarts the same
Envoy, and prints what it cost: requests that failed of all that were made, the longest time in which no new connection
got an answer, and how long after the fault the newest certificate was served for good.

  --only FAULT,…   ${faults.map(({ name }) => name).join(', ')}

Exit code 1 when a fault costs pilot-agent more than its goal (fault-list.ts), a trace does not conform to the sequence
diagrams, the run did not come to its end, or something was left behind.
`;

const times = { watchDelayMs: 100, drainMs: 1_000, parentShutdownMs: 4_000, terminationDrainMs: 1_000 };
const warmUpMs = 1_500;
const observeLimitMs = 60_000;
const probeEveryMs = 20;
/** What stays so for this long has settled. */
const steadyMs = 2_000;
const loadLimitMs = 150_000;

/** None of them retries; a failure is followed by a pause of 20 ms. */
const newClients: readonly ClientPlan[] = [{ kind: 'new', count: 2, pauseMs: 10 }];
const manyNewClients: readonly ClientPlan[] = [{ kind: 'new', count: 8 }];
const keptClients: readonly ClientPlan[] = [
  { kind: 'ka', count: 2, pauseMs: 5 },
  { kind: 'slow', count: 1, pauseMs: 1_000 },
  { kind: 'h2', count: 1, streams: 2, pauseMs: 5 },
  { kind: 'stream', count: 2, path: '/stream?seconds=1' },
];

async function measure({ mesh, onEnd }: Bench, chosen: readonly Fault[], results: FaultResult[]): Promise<void> {
  await Promise.all([mesh.startSamples(), mesh.startDiscovery()]);
  const command = await commandOfEnvoy(mesh);
  for (const fault of chosen) {
    const agent = await startAgent(mesh, fault.ownBootstrap && plainBootstrap(mesh));
    results.push(await subjectTo(fault, mesh, agent));
    const plain = await startPlainSupervisor(mesh, command, times.watchDelayMs, (program) =>
      onEnd(() => program.stop()),
    );
    results.push(await subjectTo(fault, mesh, plain));
  }
}

async function commandOfEnvoy(mesh: Mesh): Promise<EnvoyCommand> {
  const agent = await startAgent(mesh);
  const command = plainCommand(mesh, agent);
  await agent.program.stop();
  return command;
}

/** Does one fault to one subject, which is ended afterwards: nothing of it is carried over to the next. */
async function subjectTo(fault: Fault, mesh: Mesh, subject: Subject): Promise<FaultResult> {
  const plan = { target: mesh.httpsTarget, maxDurationMs: loadLimitMs };
  // A run of their own: its timeline shows when no new connection was answered.
  const clients = fault.load === undefined ? newClients : manyNewClients;
  const newConnections = await mesh.startLoad({ ...plan, clients });
  const kept = await mesh.startLoad({ ...plan, clients: keptClients });
  try {
    await sleep(warmUpMs);
    const inflicted = await fault.inflict(mesh, subject);
    const servedAfterMs = await observe(fault, mesh, subject, inflicted);
    const { timeline } = await newConnections.report();
    const cost = costOf(await Promise.all([kept.stop(), newConnections.stop()]), timeline);
    print(`${fault.what}, ${subject.name}: ${cost.failed} failed of ${cost.total}`);
    const note = inflicted.note === undefined ? {} : { note: inflicted.note };
    return { fault: fault.what, subject: subject.name, ...cost, servedAfterMs, ...note };
  } finally {
    kept.kill();
    newConnections.kill();
    await subject.program.stop();
    // The next subject must not find a certificate that the fault has taken away.
    mesh.renewCertificate();
  }
}

/**
 * Watches until the newest certificate is served and nothing more is to come.
 *
 * @returns after how long it was served and stayed so; undefined: not in time.
 */
async function observe(
  { observeMs }: Fault,
  mesh: Mesh,
  subject: Subject,
  { atMs, serialNumber }: Inflicted,
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
  const unknown = names.filter((name) => !faults.some((fault) => fault.name === name));
  if (unknown.length > 0) throw new Error(`--only: there is no fault ${unknown.join(', ')}\n\n${usage}`);
  const chosen = faults.filter(({ name }) => names.includes(name));
  const results: FaultResult[] = [];
  const { problems, refusedTraces } = await runBench({ sidecar: false, ...times }, (bench) =>
    measure(bench, chosen, results),
  );
  print(`\n${formatFaultTable(results, subjectNames)}`);
  print(`\nat most ${inFlight} requests are in flight on one Envoy; times: ${JSON.stringify(times)}`);
  const missed = results
    .filter(({ subject }) => subject === 'pilot-agent')
    .flatMap((result) => shortfalls(result, chosen.find(({ what }) => what === result.fault)?.goal ?? {}));
  const wrong = [...problems, ...refusedTraces.map((trace) => `not as the sequence diagrams say: ${trace}`), ...missed];
  for (const problem of wrong) print(`problem: ${problem}`);
  print(
    wrong.length === 0
      ? `${chosen.length} faults done, every goal reached, nothing left behind`
      : `${wrong.length} problems`,
  );
  return wrong.length === 0 ? 0 : 1;
}

await exitWith(main);
