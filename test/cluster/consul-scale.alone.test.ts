/**
 * A Consul with many services on 50 nodes: cost of the first read, connections of the watch, and the time until a client has acknowledged a health
 * change. The nightly form has 2,000 services and time limits for an idle machine: time spent waiting for a processor is subtracted, and limits scale
 * with the processor's speed.
 */
import { afterEach, expect, it } from 'vitest';
import { typeUrls } from '../ads-client.ts';
import { bestOf } from '../harness/best-of.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { sized } from '../harness/size-of-run.ts';
import { slowness } from '../harness/slowness.ts';
import { msWithoutQueueing } from '../harness/without-queueing.ts';
import { ConsulServer, stopConsulServers } from './consul-server.ts';

afterEach(async () => {
  await stopControlPlanes();
  await stopConsulServers();
});

const nodes = 50;

async function registerAll(server: ConsulServer, services: number): Promise<void> {
  const instances = Array.from({ length: services * 2 }, (_, at) => at);
  const workers = Array.from({ length: 20 }, async () => {
    for (let at = instances.pop(); at !== undefined; at = instances.pop()) {
      await server.register({
        ...{ node: `n${at % nodes}`, nodeAddress: `127.1.0.${(at % nodes) + 1}` },
        ...{ service: `s${Math.floor(at / 2)}`, id: `s${Math.floor(at / 2)}-${at % 2}`, port: 8_000 + (at % 2) },
      });
    }
  });
  await Promise.all(workers);
}

const services = sized({ short: 150, full: 2_000 });
const flips = sized({ short: 5, full: 100 });
const maxFirstContextMs = 2_000;
const maxFirstReadCpuMs = 300;

/** Milliseconds of processor time until the control plane is ready. */
async function startCpuMs(plane: ControlPlane): Promise<number> {
  const cpuAtStart = process.cpuUsage();
  await plane.ready();
  const { user, system } = process.cpuUsage(cpuAtStart);
  return (user + system) / 1_000;
}

const consulPlane = (server: ConsulServer, debounce: boolean): ControlPlane =>
  new ControlPlane({ registries: 'Consul', consulServerURL: server.url }, {}, () => {}, {
    PILOT_ENABLE_EDS_DEBOUNCE: `${debounce}`,
  });

/** @returns a function that waits for the next assignment of the cluster and acknowledges it */
async function subscribeTo(plane: ControlPlane, name: string): Promise<() => Promise<void>> {
  const { stream } = await plane.subscribe();
  stream.send({ typeUrl: typeUrls.EDS, resourceNames: [name] });
  return async () => {
    for (;;) {
      const { typeUrl, nonce } = await stream.next();
      stream.send({ typeUrl, responseNonce: nonce, ...(typeUrl === typeUrls.EDS && { resourceNames: [name] }) });
      if (typeUrl === typeUrls.EDS) return;
    }
  };
}

it.each(
  sized<readonly { debounce: boolean; maxMs: number }[]>({
    short: [{ debounce: false, maxMs: 100 }],
    full: [
      { debounce: false, maxMs: 100 },
      { debounce: true, maxMs: 250 },
    ],
  }),
)(
  'the Consul catalog is read once and watched with one connection per node, and a change of health reaches a client within %o',
  async ({ debounce, maxMs }) => {
    const server = await ConsulServer.start();
    // Cost of a start without the catalog.
    const emptyStartMs = await startCpuMs(consulPlane(server, debounce));
    await registerAll(server, services);
    const isMeasured = sized({ short: false, full: true });
    let plane!: ControlPlane;
    const readCpuMs = await bestOf(isMeasured ? 3 : 1, maxFirstReadCpuMs, async () => {
      await stopControlPlanes();
      plane = consulPlane(server, debounce);
      return ((await startCpuMs(plane)) - emptyStartMs) / (await slowness());
    });
    const at = (type: string): number => plane.records.find((r) => r.kind === 'event' && r.event.type === type)!.t;
    const readingStartedAt = plane.records.find((r) => r.kind === 'spawn' && r.actor === 'consul-catalog-1/reading')!.t;
    const firstContextMs = at('context.built') - readingStartedAt;
    const [view] = (await plane.get('/debug/consulz')).json() as [
      { strategy: string; connections: number; requests: number; last: { instances: number } },
    ];
    const slowdown = await slowness();
    console.info(
      `${services} services: ${view.strategy}, ${view.connections} connections, ${view.requests} requests, read ${Math.round(at('catalog.synced') - readingStartedAt)} ms, first context ${Math.round(firstContextMs)} ms after the first response, ${Math.round(readCpuMs)} ms CPU, machine ${slowdown.toFixed(1)} times as slow as a quiet one`,
    );
    expect(view).toMatchObject({ strategy: 'nodes', last: { instances: services * 2 } });
    expect(view.connections).toBeLessThan(60);
    // The requests are a survey, lists, one per node, and repeated blocking queries.
    expect(view.requests).toBeLessThan(2 * nodes + 70);
    const next = await subscribeTo(plane, 'outbound|8000||s7.service.consul');
    await next();
    let flip = 0;
    const measureRound = async (): Promise<number> => {
      const times: number[] = [];
      for (let count = 0; count < flips; count++) {
        const status = flip++ % 2 === 0 ? 'critical' : 'passing';
        const instance = {
          node: 'n14',
          nodeAddress: '127.1.0.15',
          service: 's7',
          id: 's7-0',
          port: 8_000,
          status,
        } as const;
        times.push(
          await msWithoutQueueing([process.pid, server.pid], () => Promise.all([server.register(instance), next()])),
        );
      }
      times.sort((one, other) => one - other);
      const p99 = times.at(-1 - Math.floor(flips / 100))!;
      console.info(`health to ACK: median ${times[flips >> 1]!.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`);
      return p99 / (await slowness());
    };
    const p99 = await bestOf(isMeasured ? 3 : 1, maxMs, measureRound);
    if (isMeasured) {
      expect(p99).toBeLessThan(maxMs);
      expect(firstContextMs / slowdown).toBeLessThan(maxFirstContextMs);
      expect(readCpuMs).toBeLessThan(maxFirstReadCpuMs);
    }
    await eventually('nothing is wrong', async () => (await plane.get('/ready')).text === '');
  },
  sized({ short: 120_000, full: 1_200_000 }),
);
