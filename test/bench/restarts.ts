/** `npm run bench:restarts`: consecutive hot restarts under load; see the usage. */
import { parseArgs } from 'node:util';
import type { TraceLine } from '../../src/runtime/trace/trace.ts';
import { eventually } from '../harness/eventually.ts';
import { followTrace } from '../harness/follow-trace.ts';
import type { Mesh } from '../harness/mesh.ts';
import { probe } from '../harness/probe.ts';
import type { LoadRun } from '../load/load-process.ts';
import type { ClientPlan } from '../load/plan.ts';
import { formatReport } from '../load/report.ts';
import { type AgentUsage, settledUsage } from './agent-usage.ts';
import { type Bench, exitWith, integerFlag, print, runBench } from './bench-run.ts';
import { formatRestartRun, formatUsage, growthRule, problemsOf, type RestartRun } from './restart-figures.ts';

const usageText = `Usage: npm run bench:restarts -- [--restarts N] [--requests-seconds S] [--drain D] [--parent-shutdown P]

Replaces the gateway's certificate N times, each time when the Envoy of the restart before has left, while clients of all
kinds send requests that take up to S seconds. None of them retries. The last line has the figures.

  --restarts N           default 200
  --requests-seconds S   default 1
  --drain D              Envoy's drain time in seconds, default 1
  --parent-shutdown P    Envoy's parent-shutdown time in seconds, default 4

Exit code 1 when a request failed, a restart was not hot or did not end, something was left behind, a trace does not
conform to the sequence diagrams, or the agent grew:
${growthRule}.
`;

const watchDelayMs = 100;
const servedLimitMs = 30_000;
/** Time limit for an exit, in addition to the parent-shutdown time. */
const leaveLimitMs = 15_000;

interface Settings {
  readonly restarts: number;
  readonly requestsMs: number;
  readonly drainMs: number;
  readonly parentShutdownMs: number;
}

/** A {@link RestartRun} during its measurement. */
type Measured = { -readonly [Key in keyof RestartRun]: RestartRun[Key] } & {
  readonly timesToLiveMs: number[];
  readonly servedAfterMs: number[];
  readonly usage: AgentUsage[];
};

function readSettings(): Settings | undefined {
  const { values } = parseArgs({
    options: {
      restarts: { type: 'string' },
      'requests-seconds': { type: 'string' },
      drain: { type: 'string' },
      'parent-shutdown': { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  if (values.help === true) return undefined;
  return {
    restarts: integerFlag('restarts', values.restarts, 200),
    requestsMs: 1_000 * integerFlag('requests-seconds', values['requests-seconds'], 1),
    drainMs: 1_000 * integerFlag('drain', values.drain, 1),
    parentShutdownMs: 1_000 * integerFlag('parent-shutdown', values['parent-shutdown'], 4),
  };
}

/** Clients of all kinds, with enough requests to detect any gap, but few enough for two cores. */
function clients(requestsMs: number): ClientPlan[] {
  return [
    { kind: 'ka', count: 2, pauseMs: 5 },
    { kind: 'ka', count: 1, path: `/slow?ms=${requestsMs}` },
    { kind: 'slow', count: 2, pauseMs: 1_000 },
    { kind: 'new', count: 1, pauseMs: 10 },
    { kind: 'h2', count: 1, streams: 2, pauseMs: 5 },
    { kind: 'stream', count: 2, path: `/stream?seconds=${requestsMs / 1_000}` },
  ];
}

async function measure({ mesh }: Bench, settings: Settings, run: Measured): Promise<void> {
  await mesh.startAll();
  const gateway = mesh.gateway!;
  const stopFollowing = followTrace(gateway.traceFile, (line) => noteTraceLine(line, run));
  const load = await mesh.startLoad({
    target: mesh.httpsTarget,
    clients: clients(settings.requestsMs),
    maxDurationMs: settings.restarts * (servedLimitMs + settings.parentShutdownMs + leaveLimitMs),
  });
  const baseIds = new Set(mesh.envoysOf(gateway).map(({ baseId }) => baseId));
  try {
    run.usage.push(await settledUsage(gateway.program.pid, baseIds));
    for (let restart = 1; restart <= settings.restarts; restart++) {
      run.servedAfterMs.push(await restartByCertificate(mesh, settings));
      for (const { baseId } of mesh.envoysOf(gateway)) baseIds.add(baseId);
      run.usage.push(await settledUsage(gateway.program.pid, baseIds));
      await printProgress(restart, settings, load, run);
    }
  } finally {
    stopFollowing();
    const report = await load.stop();
    run.requests = report.total;
    run.failed = report.failed;
    print(`\n${formatReport(report)}\n`);
  }
}

/** @returns time from writing the certificate until a new connection received it */
async function restartByCertificate(mesh: Mesh, { parentShutdownMs }: Settings): Promise<number> {
  const gateway = mesh.gateway!;
  const hopeless = (): string | undefined => gateway.program.hopeless();
  const writtenAt = performance.now();
  const serialNumber = mesh.renewCertificate();
  await eventually(
    `certificate ${serialNumber} is served`,
    async () => (await probe(mesh.httpsTarget)).serialNumber === serialNumber,
    { deadlineMs: servedLimitMs, everyMs: 20, hopeless },
  );
  const servedAfterMs = performance.now() - writtenAt;
  await eventually('the superseded Envoy has left', () => mesh.envoysOf(gateway).length === 1, {
    deadlineMs: parentShutdownMs + leaveLimitMs,
    everyMs: 100,
    hopeless,
  });
  return servedAfterMs;
}

function noteTraceLine(line: TraceLine, run: Measured): void {
  if (line.kind !== 'event' || line.to !== 'supervisor') return;
  const { type, epoch, timeToLiveMs } = line.event;
  if (type === 'epoch.failed') run.failedEpochs++;
  if (type !== 'epoch.live') return;
  if (epoch === 0) run.coldStarts++;
  else run.timesToLiveMs.push(Number(timeToLiveMs));
}

async function printProgress(restart: number, settings: Settings, load: LoadRun, run: Measured): Promise<void> {
  const { total, failed } = await load.report();
  print(
    `${String(restart).padStart(4)}/${settings.restarts}  live in ${Math.round(run.timesToLiveMs.at(-1) ?? 0)} ms, ` +
      `served after ${Math.round(run.servedAfterMs.at(-1)!)} ms; ${total} requests, ${failed} failed; ` +
      formatUsage(run.usage.at(-1)!),
  );
}

async function main(): Promise<number> {
  const settings = readSettings();
  if (settings === undefined) {
    process.stdout.write(usageText);
    return 0;
  }
  const { restarts, requestsMs, drainMs, parentShutdownMs } = settings;
  print(
    `${restarts} hot restarts, requests up to ${requestsMs} ms, drain ${drainMs} ms, parent shutdown ` +
      `${parentShutdownMs} ms, watch delay ${watchDelayMs} ms`,
  );
  if (parentShutdownMs < drainMs + requestsMs) {
    print('a parent that ends before drain + longest request cuts requests: expect failures');
  }
  const run: Measured = {
    requested: restarts,
    requests: 0,
    failed: 0,
    timesToLiveMs: [],
    servedAfterMs: [],
    coldStarts: 0,
    failedEpochs: 0,
    usage: [],
  };
  const options = { sidecar: false, watchDelayMs, drainMs, parentShutdownMs };
  const { problems, refusedTraces } = await runBench(options, (bench) => measure(bench, settings, run));
  const allProblems = [...problems, ...refusedTraces, ...problemsOf(run)];
  for (const problem of allProblems) print(`problem: ${problem}`);
  print(formatRestartRun(run));
  return allProblems.length === 0 ? 0 : 1;
}

await exitWith(main);
