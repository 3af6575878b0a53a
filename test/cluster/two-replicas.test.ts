/**
 * Two replicas of pilot-discovery as programs in a cluster, and real Envoys with agents, all connected to the first replica, which is killed with its
 * streams. Uses a separate server.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { HttpBackend } from '../e2e/features/harness/backends.ts';
import { sendRequest } from '../e2e/features/harness/requests.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { Program } from '../harness/program.ts';
import { agentArguments, agentEnvironment } from '../harness/program-arguments.ts';
import { sized } from '../harness/size-of-run.ts';
import { givenOwnServer } from './given-cluster.ts';
import { defineKinds, of } from './mesh-objects.ts';
import { type Replica, Replicas } from './replica.ts';
import { ServiceAddress } from './service-address.ts';

const ownServer = givenOwnServer();
const { cluster } = ownServer;
const replicas = new Replicas(cluster);
const folder = mkdtempSync(join(tmpdir(), 'cp-two-replicas-'));
const proxies = ['client-0', 'client-1'] as const;
const services = 20;
/** The documented limit in milliseconds; longer next to ten other processes. */
const promisedMs = sized({ short: 10_000, full: 3_000 });

interface Agent {
  readonly program: Program;
  readonly adminPort: number;
  readonly statusPort: number;
  /** Port for requests of the agent's application. */
  readonly port: number;
}

let first: Replica;
let address: ServiceAddress;
let backend: HttpBackend;
const agents: Agent[] = [];

const hostOf = (index: number): string => `s${index}.example.com`;

beforeAll(async () => {
  await defineKinds(cluster);
  backend = await HttpBackend.start('web');
  const ports = await freePorts(proxies.length);
  for (let index = 0; index < services; index++) {
    await cluster.apply(of.serviceEntries, {
      metadata: { name: `s${index}` },
      spec: {
        ...{ hosts: [hostOf(index)], resolution: 'STATIC' },
        ports: ports.map((number, at) => ({ number, name: `http-${at}`, protocol: 'HTTP', targetPort: backend.port })),
        endpoints: [{ address: backend.address }],
      },
    });
  }
  const [one, second] = await Promise.all([replicas.start('one'), replicas.start('two')]);
  first = one;
  address = await ServiceAddress.forPorts(first.plainPort, second.plainPort);
  for (const [index, name] of proxies.entries()) agents.push(await startAgent(name, ports[index]!));
});

afterAll(async () => {
  await Promise.all(agents.map(({ program }) => program.stop()));
  address?.close();
  await backend?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A sidecar that binds one of the services' ports at loopback. */
async function startAgent(name: string, port: number): Promise<Agent> {
  const [adminPort, statusPort] = (await freePorts(2)) as [number, number];
  const args = agentArguments({
    ...{ role: 'sidecar', name, xdsPort: address.port, adminPort, statusPort, configDirectory: join(folder, name) },
    ...{ drainMs: 1_000, parentShutdownMs: 2_000, traceFile: join(folder, `${name}.trace`), delta: true },
    runDirectory: join(folder, 'run'),
  });
  const env = { ...process.env, ...agentEnvironment(name, { app: name }, 0), POD_NAMESPACE: cluster.namespace };
  await cluster.apply(sidecars, {
    metadata: { name },
    spec: {
      workloadSelector: { labels: { app: name } },
      egress: [{ port: { number: port, protocol: 'HTTP', name: 'http' }, bind: '127.0.0.1', hosts: ['./*'] }],
      ingress: [],
    },
  });
  const program = Program.start('pilot-agent', { args, env, cwd: folder }, name);
  await eventually(`${name} is ready`, async () => (await fetch(`http://127.0.0.1:${statusPort}/healthz/ready`)).ok, {
    hopeless: () => program.hopeless(),
  });
  const agent = { program, adminPort, statusPort, port };
  await eventually(`${name} sends requests on`, async () => (await requestService(agent, 0)) === 'web');
  return agent;
}

const sidecars = { ...of.serviceEntries, plural: 'sidecars', kind: 'Sidecar' };

async function requestService({ port }: Agent, service: number): Promise<string> {
  return (await sendRequest({ port, host: hostOf(service) })).seen?.backend ?? 'nobody';
}

/** Bytes that Envoy received from its control plane. */
async function receivedBytes({ adminPort }: Agent): Promise<number> {
  const filter = '^cluster.xds-grpc;.upstream_cx_rx_bytes_total$';
  const text = await (await fetch(`http://127.0.0.1:${adminPort}/stats?filter=${filter}`)).text();
  return Number(/: (\d+)/.exec(text)?.[1]);
}

/** The number of received bytes once no more arrive. */
async function quietBytes(agent: Agent): Promise<number> {
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

/** Responses that the agent has forwarded. */
async function responses({ statusPort }: Agent): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${statusPort}/stats/prometheus`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith('istio_agent_xds_proxy_responses'));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

/** Bytes that HTTP/2 needs to open a connection, plus responses without resources. */
const emptyResponsesBytes = 2_000;

it('killing the replica with all streams fails no request, and the other replica serves the Envoys without resending resources', async () => {
  expect(address.acceptedCounts[0]).toBeGreaterThan(0);
  expect(address.acceptedCounts[1]).toBe(0);
  const initial = await Promise.all(agents.map(quietBytes));
  const responsesBefore = await Promise.all(agents.map(responses));
  let isOver = false;
  const failures: string[] = [];
  let requests = 0;
  const load = agents.map(async (agent) => {
    for (let service = 0; !isOver; service = (service + 1) % services) {
      const outcome = await requestService(agent, service).catch(String);
      requests++;
      if (outcome !== 'web') failures.push(outcome);
      await sleep(2);
    }
  });
  await sleep(200);
  process.kill(first.program.pid, 'SIGKILL');
  const killedAt = performance.now();
  const tookMs = await Promise.all(
    agents.map(async (agent, index) => {
      await eventually('it is answered', async () => (await responses(agent)) > responsesBefore[index]!, {
        everyMs: 20,
      });
      return Math.round(performance.now() - killedAt);
    }),
  );
  const bytes = (await Promise.all(agents.map(quietBytes))).map((all, index) => all - initial[index]!);
  await eventually('each service was asked for more than once', () => requests > 2 * services);
  isOver = true;
  await Promise.all(load);
  console.log(`with the other one after ${tookMs} ms; ${requests} requests; ${bytes} bytes, at first ${initial}`);
  expect(failures).toEqual([]);
  expect(Math.max(...tookMs)).toBeLessThan(promisedMs);
  expect(Math.max(...bytes)).toBeLessThan(emptyResponsesBytes);
  expect(Math.min(...initial)).toBeGreaterThan(5 * emptyResponsesBytes);
  // From here on Envoys get changes from the other replica.
  await cluster.delete(of.serviceEntries, 's0');
  await eventually('what was changed since is in force', async () => {
    return (await requestService(agents[0]!, 0).catch(() => 'nobody')) === 'nobody';
  });
});
