/** Kills and restarts the control plane ten times under load, and checks Envoy's stream and the requests. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import { type AgentProgram, type Mesh, startMesh } from '../harness/mesh.ts';
import { sized } from '../harness/size-of-run.ts';
import { formatReport } from '../load/report.ts';
import { conclude } from './conclude.ts';

const { kills } = sized({ short: { kills: 3 }, full: { kills: 10 } });

let mesh: Mesh;

beforeAll(async () => {
  mesh = await startMesh({ delta: true });
});

afterAll(() => conclude(mesh));

/** A metric of the agent. */
async function metric({ statusPort }: AgentProgram, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${statusPort}/stats/prometheus`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(name));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

const responses = (agent: AgentProgram): Promise<number> => metric(agent, 'istio_agent_xds_proxy_responses');

/** A counter of bytes that Envoy received from the agent's xDS proxy. */
async function stat({ adminPort }: AgentProgram, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${adminPort}/stats?filter=^${name}$`)).text();
  return Number(/: (\d+)/.exec(text)?.[1]);
}

const receivedBytes = (agent: AgentProgram): Promise<number> =>
  stat(agent, 'cluster.xds-grpc;.upstream_cx_rx_bytes_total');

/** The number of received bytes once no more arrive. */
async function quietBytes(agent: AgentProgram): Promise<number> {
  let bytes = -1;
  await eventually('nothing more is sent', async () => {
    const previousBytes = bytes;
    bytes = await receivedBytes(agent);
    if (bytes === previousBytes) return true;
    await sleep(300);
    return false;
  });
  return bytes;
}

const accepts = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/ready`).then(
    ({ status }) => status === 200,
    () => false,
  );

/** Bytes that HTTP/2 needs to open a connection, plus responses without resources. */
const emptyResponsesBytes = 2_000;
/**
 * Maximum time from a ready control plane to its first response. Up to 1.5 s of the agent's backoff may remain; the rest is short only on a quiet
 * machine. test/model/xds-proxy.test.ts checks without a clock that the backoff stops growing.
 */
const backLimitMs = sized({ short: 10_000, full: 2_000 });

test(`killing the control plane ${kills} times fails no request, and the streams resume in time without resending resources`, async () => {
  const agents = [mesh.gateway!, mesh.sidecar!];
  const initial = await Promise.all(agents.map(quietBytes));
  const load = await mesh.startLoad({
    target: mesh.httpsTarget,
    clients: [
      { kind: 'ka', count: 2, pauseMs: 5 },
      { kind: 'new', count: 1, pauseMs: 10 },
      { kind: 'h2', count: 1, streams: 2, pauseMs: 5 },
      { kind: 'stream', count: 2, path: '/stream?seconds=3' },
    ],
    maxDurationMs: 240_000,
  });
  const backAfterMs: number[] = [];
  const bytes: number[] = [];
  for (let kill = 0; kill < kills; kill++) {
    const previousBytes = await Promise.all(agents.map(quietBytes));
    const { program, httpPort } = mesh.discovery!;
    process.kill(program.pid, 'SIGKILL');
    await program.exited;
    // Some outages last long enough for the backoff to grow.
    await sleep(kill % 3 === 2 ? 4_000 : 200);
    const responsesBefore = await Promise.all(agents.map(responses));
    const starting = mesh.startDiscovery();
    await eventually('it is ready', () => accepts(httpPort), { everyMs: 10 });
    const readyAt = performance.now();
    await Promise.all(
      agents.map(async (agent, index) => {
        await eventually(
          `${agent.program.name} is answered`,
          async () => (await responses(agent)) > responsesBefore[index]!,
          {
            everyMs: 20,
          },
        );
        backAfterMs.push(Math.round(performance.now() - readyAt));
      }),
    );
    await starting;
    const bytesAfter = await Promise.all(agents.map(quietBytes));
    bytes.push(...bytesAfter.map((all, index) => all - previousBytes[index]!));
  }
  const report = await load.stop();
  console.log(
    `${kills} kills: back after ${backAfterMs.join(', ')} ms; bytes ${bytes.join(', ')}, at first ${initial.join(', ')}\n${formatReport(report)}`,
  );
  expect(report.failed, formatReport(report)).toBe(0);
  expect(report.total).toBeGreaterThan(500);
  expect(Math.max(...backAfterMs)).toBeLessThan(backLimitMs);
  expect(Math.max(...bytes)).toBeLessThan(emptyResponsesBytes);
  expect(Math.min(...initial)).toBeGreaterThan(2 * emptyResponsesBytes);
});
