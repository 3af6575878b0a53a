/** `npm start -- --check`: applies every change that the demo suggests, under load, and measures its effect. */
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../harness/eventually.ts';
import type { EnvoyProcess } from '../harness/host-processes.ts';
import type { AgentProgram, Mesh } from '../harness/mesh.ts';
import type { Weights } from '../harness/mesh-directory.ts';
import { probe } from '../harness/probe.ts';
import type { LoadRun } from '../load/load-process.ts';
import type { ClientPlan, LoadTarget } from '../load/plan.ts';
import type { LoadReport } from '../load/report.ts';
import { checkIdentity } from './check-identity.ts';
import { type CheckFinding, type CheckStep, duration, percent, runSteps } from './findings.ts';
import { noFailures, type Progress } from './load-findings.ts';
import { appliesAfterMs, shareBetween } from './split.ts';

const inForceLimitMs = 1_000;
const recoveryLimitMs = 1_000;
/** Maximum deviation of a share: more than four standard deviations of 500 random choices. */
const shareTolerance = 0.08;
const loadLimitMs = 110_000;

/** Frequent enough to detect any gap, and light enough for two cores. No client retries. */
const allKinds: readonly ClientPlan[] = [
  { kind: 'ka', count: 2, pauseMs: 5 },
  { kind: 'slow', count: 2, pauseMs: 1_000 },
  { kind: 'new', count: 1, pauseMs: 10 },
  { kind: 'h2', count: 1, streams: 2, pauseMs: 5 },
  { kind: 'stream', count: 2, path: '/stream?seconds=3' },
];

/** All steps except the stop: the mesh runs before and after them. */
export async function checkRunningMesh(mesh: Mesh, progress: Progress): Promise<CheckFinding[]> {
  const steps: readonly CheckStep[] = [
    ['weights in the file: 90/10, then 20/80', () => checkWeights(mesh)],
    ['three hot restarts of the gateway under load: two certificates, one HUP', () => checkRestarts(mesh, progress)],
    ['identities: plaintext is rejected, certificates of workloads are rotated', () => checkIdentity(mesh, progress)],
    ["kill -9 of the gateway's Envoy", () => checkKill(mesh, 'gateway', mesh.gateway!, mesh.httpsTarget)],
    ["kill -9 of the sidecar's Envoy", () => checkKill(mesh, 'sidecar', mesh.sidecar!, mesh.sidecarTarget)],
  ];
  return runSteps(steps, progress);
}

async function checkWeights(mesh: Mesh): Promise<CheckFinding[]> {
  const previous: Weights = { v1: 90, v2: 10 };
  const nextWeights: Weights = { v1: 20, v2: 80 };
  const load = await mesh.startLoad({
    target: mesh.httpTarget,
    clients: [{ kind: 'ka', count: 4, pauseMs: 4 }],
    maxDurationMs: loadLimitMs,
  });
  await sleep(2_500);
  const writtenAt = mesh.directory.setWeights(nextWeights);
  await sleep(3_500);
  const report = await load.stop();
  const changedAtMs = writtenAt - report.startedAt;
  const change = { version: 'v2', changedAtMs, previousShare: previous.v2 / 100, after: nextWeights.v2 / 100 };
  const inForceMs = appliesAfterMs(report, change);
  return [
    shareFinding('share of v2 before the edit', report, change.previousShare, [0, changedAtMs]),
    shareFinding('share of v2 after the edit', report, change.after, [
      changedAtMs + inForceLimitMs,
      Number.POSITIVE_INFINITY,
    ]),
    {
      check: 'new weights apply after the write',
      seen: inForceMs === undefined ? 'never' : duration(inForceMs),
      expected: `within ${duration(inForceLimitMs)}`,
      ok: inForceMs !== undefined && inForceMs <= inForceLimitMs,
    },
    noFailures('requests during the change', report),
  ];
}

function shareFinding(
  check: string,
  report: LoadReport,
  expectedShare: number,
  [from, to]: readonly [number, number],
): CheckFinding {
  const { share, responses } = shareBetween(report, 'v2', from, to);
  return {
    check,
    seen: `${percent(share)} of ${responses}`,
    expected: `${percent(expectedShare)} ± ${percent(shareTolerance)}`,
    ok: Math.abs(share - expectedShare) <= shareTolerance,
  };
}

async function checkRestarts(mesh: Mesh, progress: Progress): Promise<CheckFinding[]> {
  const load = await mesh.startLoad({ target: mesh.httpsTarget, clients: allKinds, maxDurationMs: loadLimitMs });
  try {
    await sleep(1_000);
    const findings: CheckFinding[] = [];
    for (const ordinal of ['first', 'second']) {
      findings.push(await restartByCertificate(mesh, load, `${ordinal} new certificate served`));
      progress(`  ${findings.at(-1)!.check} after ${findings.at(-1)!.seen}`);
    }
    findings.push(await restartByHup(mesh));
    progress(`  ${findings.at(-1)!.check} after ${findings.at(-1)!.seen}`);
    await sleep(1_000);
    return [...findings, noFailures('requests during the restarts', await load.stop())];
  } finally {
    load.kill();
  }
}

async function restartByCertificate(mesh: Mesh, load: LoadRun, check: string): Promise<CheckFinding> {
  const previous = mesh.envoysOf(mesh.gateway!).at(-1)!;
  const serialNumber = mesh.renewCertificate();
  const startedAt = performance.now();
  await eventually(
    'the new certificate is served',
    async () => (await probe(mesh.httpsTarget)).serialNumber === serialNumber,
    { everyMs: 20 },
  );
  const servedAfterMs = performance.now() - startedAt;
  // Envoy gets these files from its agent immediately. If their directory is also in --watchCerts, the agent also restarts Envoy.
  const { epoch } = await newerLiveEnvoy(mesh, previous);
  await waitForOneEnvoy(mesh);
  // The clients have received it, too, and the old Envoy has exited: a new connection gets the new certificate.
  const newest = (await load.report()).certificates.toSorted((a, b) => a.lastSeenMs - b.lastSeenMs).at(-1);
  const ok = newest?.serialNumber === serialNumber && epoch === previous.epoch + 1;
  const observedText = `${duration(servedAfterMs)}, epoch ${epoch}`;
  return { check, seen: observedText, expected: `hot restart to epoch ${previous.epoch + 1}, watch delay 500 ms`, ok };
}

async function restartByHup(mesh: Mesh): Promise<CheckFinding> {
  const gateway = mesh.gateway!;
  const previous = mesh.envoysOf(gateway).at(-1)!;
  const startedAt = performance.now();
  gateway.program.signal('SIGHUP');
  const nextEnvoy = await newerLiveEnvoy(mesh, previous);
  const liveAfterMs = performance.now() - startedAt;
  await waitForOneEnvoy(mesh);
  const ok = nextEnvoy.epoch === previous.epoch + 1;
  return {
    check: 'restart by SIGHUP is live',
    seen: `${duration(liveAfterMs)}, epoch ${nextEnvoy.epoch}`,
    expected: `epoch ${previous.epoch + 1}`,
    ok,
  };
}

async function newerLiveEnvoy(mesh: Mesh, previous: EnvoyProcess): Promise<EnvoyProcess> {
  const gateway = mesh.gateway!;
  return eventually('a newer epoch is the only one that serves', async () => {
    const newest = mesh.envoysOf(gateway).at(-1);
    return newest !== undefined && newest.epoch > previous.epoch && (await isLive(gateway, newest.epoch)) && newest;
  });
}

/** Uses a new connection: a reused one stays with the old epoch. */
async function isLive({ adminPort }: AgentProgram, epoch: number): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/server_info`, {
    headers: { connection: 'close' },
    signal: AbortSignal.timeout(2_000),
  });
  const info = (await response.json()) as { state: string; command_line_options: { restart_epoch: number } };
  return info.state === 'LIVE' && info.command_line_options.restart_epoch === epoch;
}

/** Waits until a restart of the gateway is complete and the superseded Envoy has exited. */
async function waitForOneEnvoy(mesh: Mesh): Promise<void> {
  await eventually('the old Envoy has left', () => mesh.envoysOf(mesh.gateway!).length === 1);
}

async function checkKill(mesh: Mesh, name: string, agent: AgentProgram, target: LoadTarget): Promise<CheckFinding[]> {
  const [envoy, ...oldEnvoys] = mesh.envoysOf(agent);
  if (envoy === undefined || oldEnvoys.length > 0)
    throw new Error(`${name} should have one Envoy, has ${oldEnvoys.length + 1}`);
  process.kill(envoy.pid, 'SIGKILL');
  const startedAt = performance.now();
  // The last response of the old Envoy must not be mistaken for the first one of its successor.
  await eventually('the old Envoy has exited', () => !mesh.envoysOf(agent).some(({ pid }) => pid === envoy.pid), {
    everyMs: 1,
  });
  await eventually('it serves again', async () => (await probe(target, { timeoutMs: 500 })).outcome.ok, { everyMs: 5 });
  const recoveredMs = performance.now() - startedAt;
  return [
    {
      check: `${name} serves again after kill -9`,
      seen: duration(recoveredMs),
      expected: `within ${duration(recoveryLimitMs)}`,
      ok: recoveredMs <= recoveryLimitMs,
    },
  ];
}
