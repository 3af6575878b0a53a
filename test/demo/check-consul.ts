/** `npm run demo:consul -- --check`: weights of a VirtualService, and an outage of Consul under load. */
import { basename } from 'node:path';
import { checkTraces } from '../harness/check-traces.ts';
import { eventually } from '../harness/eventually.ts';
import type { ConsulMesh } from './consul-mesh.ts';
import { type CheckFinding, type CheckStep, percent, runSteps } from './findings.ts';
import type { Progress } from './load-findings.ts';

const requests = 400;
const weights = { v1: 80, v2: 20 };
/** Four standard deviations of 400 random choices. */
const shareTolerance = 0.08;

export async function checkConsul(mesh: ConsulMesh, progress: Progress): Promise<CheckFinding[]> {
  const steps: readonly CheckStep[] = [
    [`weights in the VirtualService: ${weights.v1}/${weights.v2}, then 0/100`, () => weightFindings(mesh)],
    ['Consul is killed and started under load', () => outageFindings(mesh)],
  ];
  return runSteps(steps, progress);
}

/** Stops all programs and checks their exit codes. */
export async function checkConsulEnd(mesh: ConsulMesh): Promise<CheckFinding[]> {
  const leftovers = await mesh.stop({ keepDirectory: true });
  const codes = mesh.agents.map(({ exit }) => exit?.signal ?? exit?.code);
  const findings = [
    finding('exit codes of the agents after SIGTERM', codes.join(', '), '0, 0, 0'),
    finding('left behind', leftovers.join('; ') || 'nothing', 'nothing'),
  ];
  for (const file of mesh.traceFiles) {
    const { code, output } = await checkTraces([file]);
    const name = basename(file, '.trace.ndjson');
    findings.push({
      ...finding(`trace of ${name}`, code === 0 ? 'accepted' : 'rejected', 'accepted'),
      ...(code !== 0 && { detail: output }),
    });
  }
  return findings;
}

const finding = (check: string, observedText: string, expected: string): CheckFinding => ({
  check,
  seen: observedText,
  expected,
  ok: observedText === expected,
});

async function weightFindings(mesh: ConsulMesh): Promise<CheckFinding[]> {
  mesh.setWeights(weights.v1, weights.v2);
  // The previous weights are equal: their share of 200 requests is not below 30 %.
  await eventually('the new weights apply', async () => {
    const { v2 = 0 } = await countResponses(mesh, 200);
    return v2 / 200 < 0.3;
  });
  const counts = await countResponses(mesh, requests);
  const share = (counts.v2 ?? 0) / requests;
  const expectedShare = weights.v2 / 100;
  mesh.setWeights(0, 100);
  await eventually('all requests go to v2', async () => (await countResponses(mesh, 10)).v2 === 10);
  const countsAfter = await countResponses(mesh, 100);
  return [
    {
      check: 'share of v2, by the VirtualService',
      seen: `${percent(share)} of ${requests}`,
      expected: `${percent(expectedShare)} ± ${percent(shareTolerance)}`,
      ok: Math.abs(share - expectedShare) <= shareTolerance,
    },
    finding('responses after weights 0/100', textOf(countsAfter), 'v2: 100'),
  ];
}

async function outageFindings(mesh: ConsulMesh): Promise<CheckFinding[]> {
  const counts: Record<string, number> = {};
  let isOver = false;
  const load = (async () => {
    while (!isOver) for (const [name, count] of Object.entries(await countResponses(mesh, 4))) add(counts, name, count);
  })();
  const condition = async (): Promise<string> => {
    const response = await fetch(`http://127.0.0.1:${mesh.httpPort}/debug/consulz`);
    return ((await response.json()) as { condition: string }[])[0]!.condition;
  };
  try {
    await mesh.consul.kill();
    await eventually('the outage is reported', async () => (await condition()) === 'failing');
    await mesh.consul.start();
    await eventually('the recovery is reported', async () => (await condition()) === 'synced');
  } finally {
    isOver = true;
    await load;
  }
  const failedCounts = Object.entries(counts).filter(([name]) => name !== 'v2');
  return [finding('failed requests while Consul restarts', textOf(Object.fromEntries(failedCounts)) || 'none', 'none')];
}

/** Sends requests, four at a time. @returns the number of responses by version or failure */
async function countResponses(mesh: ConsulMesh, times: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  let remainingRequests = times;
  const client = async (): Promise<void> => {
    while (remainingRequests-- > 0) add(counts, await mesh.request().catch(String), 1);
  };
  await Promise.all([client(), client(), client(), client()]);
  return counts;
}

function add(counts: Record<string, number>, name: string, count: number): void {
  counts[name] = (counts[name] ?? 0) + count;
}

const textOf = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${name}: ${count}`)
    .join(', ');
