/**
 * The sidecar's agent connects its Envoy to the control plane, serves its certificate, and resolves the workload's names. A newer agent
 * replaces it, on request and after kill -9, without an effect on clients.
 */
import { createSocket, type Socket } from 'node:dgram';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { encode } from 'dns-packet';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkTraces } from '../harness/check-traces.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { type ContainedSidecar, Mesh, sampleHost } from '../harness/mesh.ts';
import { sized } from '../harness/size-of-run.ts';
import { queuedMs } from '../harness/without-queueing.ts';
import { formatReport } from '../load/report.ts';
import { conclude } from './conclude.ts';

const { times, kills } = sized({
  quick: { times: 1, kills: 1 },
  short: { times: 2, kills: 2 },
  full: { times: 40, kills: 16 },
});

let mesh: Mesh | undefined;
let sidecar: ContainedSidecar;
let dnsPort = 0;

beforeAll(async () => {
  [dnsPort = 0] = await freePorts(1);
  mesh = await Mesh.create({ mutualTls: true, delta: true, drainMs: 1_000, parentShutdownMs: 3_000 });
  await Promise.all([mesh.startSamples(), mesh.startDiscovery()]);
  sidecar = await mesh.startContainedSidecar({
    LIVE_RESTORE: 'true',
    ISTIO_META_DNS_CAPTURE: 'true',
    DNS_PROXY_ADDR: `127.0.0.1:${dnsPort}`,
  });
  await Promise.all([mesh.waitForAgent(mesh.startGateway()), mesh.waitForAgent(sidecar)]);
  await Promise.all([mesh.httpTarget, mesh.sidecarTarget].map((target) => mesh!.waitForResponse(target)));
});

afterAll(async () => {
  sidecar.container.signal('SIGTERM');
  await sidecar.container.ended();
  await conclude(mesh);
});

const nodes = (): number[] => sidecar.container.agents();
const envoys = (): number[] => mesh!.envoysOf(sidecar).map(({ pid }) => pid);

const isResolving = async (): Promise<boolean> => {
  try {
    await fetch(`http://127.0.0.1:${sidecar.statusPort}/healthz/ready`);
    return true;
  } catch {
    return false;
  }
};

/** The timeout of a resolver (resolv.conf(5), `timeout`) plus the time of a response on a busy machine, in milliseconds. */
const queryTimeoutMs = 8_000;

/** Queries the agent for a name of its table every few milliseconds, and counts the results. */
class NameClient {
  queryCount = 0;
  readonly responses = new Map<number, number>();
  /** Several open sockets: a single one could not buffer all responses of a new agent. */
  readonly #openSockets: readonly Socket[] = Array.from({ length: 16 }, () => this.#openSocket());
  #isOver = false;
  readonly #run: Promise<void>;

  constructor(port: number) {
    this.#run = this.#query(port);
  }

  #openSocket(): Socket {
    const socket = createSocket('udp4');
    return socket.on('message', (message) => this.responses.set(message.readUInt16BE(0), message.readUInt16BE(6)));
  }

  async #query(port: number): Promise<void> {
    while (!this.#isOver) {
      const id = ++this.queryCount;
      const query = encode({ type: 'query', id, questions: [{ type: 'A', name: sampleHost }] });
      // Every second query uses a new socket, because the kernel assigns each client address to one of two sockets that share a port.
      const socket = id % 2 === 0 ? this.#openSockets[(id / 2) % this.#openSockets.length]! : this.#openQuerySocket();
      socket.send(query, port, '127.0.0.1');
      await sleep(4);
    }
  }

  /** A socket that closes after its response or timeout. */
  #openQuerySocket(): Socket {
    const socket = this.#openSocket();
    const limit = setTimeout(() => socket.close(), queryTimeoutMs).unref();
    socket.once('message', () => socket.close()).once('close', () => clearTimeout(limit));
    return socket;
  }

  /** @returns the number of queries, of queries without a response, and of responses without an address */
  async end(): Promise<{ queryCount: number; lost: number; empty: number }> {
    this.#isOver = true;
    await this.#run;
    const limit = performance.now() + queryTimeoutMs;
    while (this.responses.size < this.queryCount && performance.now() < limit) await sleep(20);
    for (const socket of this.#openSockets) socket.close();
    const emptyCount = [...this.responses.values()].filter((count) => count === 0).length;
    return { queryCount: this.queryCount, lost: this.queryCount - this.responses.size, empty: emptyCount };
  }
}

async function underLoad(
  work: () => Promise<void>,
): Promise<{ maxMs: number; names: string; lost: number; empty: number }> {
  const clients = [
    { kind: 'ka', count: 1, pauseMs: 5 },
    { kind: 'new', count: 1, pauseMs: 10 },
  ] as const;
  const targets = [mesh!.httpTarget, mesh!.sidecarTarget];
  const loads = await Promise.all(
    targets.map((target) => mesh!.startLoad({ target, clients: [...clients], maxDurationMs: 580_000 })),
  );
  const client = new NameClient(dnsPort);
  let maxMs = 0;
  let isOver = false;
  const probing = (async () => {
    // Excludes the time during which this process or an agent waited for a processor.
    const queued = (): ReadonlyMap<number, number> =>
      new Map([process.pid, ...nodes()].map((pid) => [pid, queuedMs(pid)]));
    let since = { ms: performance.now(), queued: queued() };
    for (; !isOver; await sleep(10)) {
      const now = { ms: performance.now(), queued: queued() };
      const waited = [...now.queued].reduce((sum, [pid, ms]) => sum + ms - (since.queued.get(pid) ?? 0), 0);
      maxMs = Math.max(maxMs, now.ms - since.ms - waited);
      if (await isResolving()) since = { ms: performance.now(), queued: queued() };
    }
  })();
  await work();
  isOver = true;
  await probing;
  const { queryCount, lost, empty } = await client.end();
  for (const load of loads) {
    const report = await load.stop();
    console.log(formatReport(report));
    expect(report.failed, formatReport(report)).toBe(0);
    expect(report.total).toBeGreaterThan(20);
  }
  return {
    maxMs: Math.round(maxMs),
    names: `${lost} lost and ${empty} empty of ${queryCount} questions`,
    lost,
    empty,
  };
}

const isReady = async (): Promise<boolean> => {
  const probe = fetch(`http://127.0.0.1:${sidecar.statusPort}/healthz/ready`);
  return probe.then(({ status }) => status === 200).catch(() => false);
};

test(`${times} replacements of a sidecar's agent with a newer one, with hot restarts in between, fail no request`, async () => {
  const first = envoys();
  expect(first).toHaveLength(1);
  const { maxMs, names, lost, empty } = await underLoad(async () => {
    for (let time = 0; time < times; time++) {
      const [previous] = nodes();
      sidecar.container.signal('SIGUSR2');
      // A hot restart is requested during the start of the newer agent, during the hand-over, and after it.
      const orderedRestart =
        time % 3 === 1 ? sleep((time * 97) % 1_200).then(() => sidecar.container.signal('SIGHUP')) : undefined;
      await eventually('a newer agent is alone', () => nodes().length === 1 && nodes()[0] !== previous, { everyMs: 5 });
      if (time === 0) expect(envoys()).toEqual(first);
      await orderedRestart;
      await eventually('it is ready', isReady, { everyMs: 10 });
      await sleep((time * 137) % 700);
    }
  });
  console.log(`${times} agents; the status port answered nobody for ${maxMs} ms; ${names}`);
  expect(maxMs).toBeLessThan(500);
  // An agent without the name table does not respond.
  expect({ lost, empty }).toEqual({ lost: 0, empty: 0 });
  await sidecar.container.hasNoZombie();
});

test(`${kills} kills of either agent during a hand-over, and of a single agent, fail no request`, async () => {
  const { maxMs, names, lost } = await underLoad(async () => {
    for (let kill = 0; kill < kills; kill++) {
      // The launcher exits after ten consecutive agents that run for less than two seconds.
      if (kill % 5 === 4) await sleep(2_500);
      const [olderPid] = nodes();
      if (kill % 4 !== 3) sidecar.container.signal('SIGUSR2');
      const isNewer = kill % 2 === 0;
      await sleep(kill % 4 === 3 ? 0 : 300 + ((kill * 83) % 400));
      const victim = isNewer ? nodes().find((pid) => pid !== olderPid) : olderPid;
      try {
        if (victim !== undefined) process.kill(victim, 'SIGKILL');
      } catch {
        // The agent exited before it could be killed.
      }
      await eventually('one agent is left, and ready', async () => nodes().length === 1 && (await isReady()), {
        everyMs: 10,
      });
      if (kill % 3 === 1) sidecar.container.signal('SIGHUP');
    }
  });
  console.log(`${kills} kills; the status port answered nobody for ${maxMs} ms; ${names}`);
  // Queries that a killed agent had read are lost, but only those of a few milliseconds.
  expect(lost).toBeLessThanOrEqual(3 * kills);
  await sidecar.container.hasNoZombie();
});

/** Each step of a replacement, as recorded in the trace of one of the two agents. */
const allSteps = [
  'successor.ready',
  'succession.due',
  'succession.begin',
  'successor.grant',
  'predecessor.granted',
  'succession.taken',
  'epochs.adopted',
  'succession.complete',
  'takeover.confirm',
  'successor.confirmed',
] as const;
const onBothSides = (steps: readonly (typeof allSteps)[number][]) =>
  steps.flatMap((step) => [['newer', step] as const, ['older', step] as const]);
const { killedAt } = sized({
  quick: { killedAt: onBothSides(['successor.grant']) },
  short: { killedAt: onBothSides(['succession.begin', 'succession.taken']) },
  full: { killedAt: onBothSides(allSteps) },
});

test(`killing either agent at each of ${killedAt.length} steps fails no request, and hot restarts still work`, async () => {
  const folder = join(mesh!.root, 'traces');
  // Caches size and count of each trace, because traces are polled each millisecond and most of the fifty agents have exited.
  const countsByFile = new Map<string, { size: number; count: number }>();
  const timesRecordedIn = (name: string, step: string): number => {
    const file = join(folder, name);
    const { size } = statSync(file);
    const cachedCount = countsByFile.get(`${file} ${step}`);
    if (cachedCount?.size === size) return cachedCount.count;
    const count = readFileSync(file, 'utf8').split(`"event":{"type":"${step}"`).length - 1;
    countsByFile.set(`${file} ${step}`, { size, count });
    return count;
  };
  const timesReported = (step: string): number =>
    readdirSync(folder)
      .filter((name) => name.startsWith('sidecar'))
      .reduce((sum, name) => sum + timesRecordedIn(name, step), 0);
  const { maxMs, names, lost, empty } = await underLoad(async () => {
    for (const [index, [agentSide, step]] of killedAt.entries()) {
      if (index % 5 === 4) await sleep(2_500);
      const [olderPid] = nodes();
      const previous = timesReported(step);
      sidecar.container.signal('SIGUSR2');
      const newer = await eventually('a newer agent', () => nodes().find((pid) => pid !== olderPid), { everyMs: 1 });
      await eventually(`it is told: ${step}`, () => timesReported(step) > previous, { everyMs: 1 });
      try {
        process.kill(agentSide === 'older' ? olderPid! : newer!, 'SIGKILL');
      } catch {
        // The agent exited before it could be killed.
      }
      await eventually(
        `${agentSide} killed at ${step}: one agent is left, and ready`,
        async () => nodes().length === 1 && (await isReady()),
        { everyMs: 5 },
      );
      if (index % 4 === 3) sidecar.container.signal('SIGHUP');
    }
  });
  console.log(`${killedAt.length} kills at steps; the status port answered nobody for ${maxMs} ms; ${names}`);
  expect(maxMs).toBeLessThan(500);
  expect(lost).toBeLessThanOrEqual(3 * killedAt.length);
  expect(empty).toBe(0);
  await sidecar.container.hasNoZombie();
  const [newest] = envoys().slice(-1);
  sidecar.container.signal('SIGHUP');
  await eventually('Envoy is restarted hot', async () => !envoys().slice(-1).includes(newest!) && (await isReady()));
});

test('no socket of an exited agent remains, and the traces of all agents conform to the diagrams', async () => {
  const directory = join(mesh!.root, 'sidecar');
  const sockets = readdirSync(directory).filter((name) => name.startsWith('XDS'));
  expect(sockets.length).toBeLessThanOrEqual(3);
  const folder = join(mesh!.root, 'traces');
  // An agent that was killed before its first record left an empty trace.
  const traces = readdirSync(folder)
    .filter((name) => name.startsWith('sidecar'))
    .map((name) => join(folder, name))
    .filter((file) => statSync(file).size > 0);
  expect(traces.length).toBeGreaterThan(times);
  // Excludes agents that were killed before they opened anything.
  const newer = traces
    .filter((name) => !name.endsWith('.ndjson'))
    .map((name) => readFileSync(name, 'utf8').split('\n').slice(1))
    .find((records) => records.some((record) => record.includes('"xds.listening"')))!;
  const [roots = -1, listening = -1] = ['trust-bundle.received', 'xds.listening'].map((type) =>
    newer.findIndex((record) => record.includes(`"${type}"`)),
  );
  // The roots of the control plane are known before any Envoy requests them.
  expect(roots).toBeGreaterThan(-1);
  expect(roots).toBeLessThan(listening);
  const { code, output } = await checkTraces(traces);
  expect(code, output).toBe(0);
});
