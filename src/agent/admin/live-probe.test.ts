import { createServer, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createActor, type EventObject, setup } from 'xstate';
import { adminAt, freePort } from '../../../test/fixtures/real-envoy.ts';
import { bestOf } from '../../../test/harness/best-of.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { msWithoutQueueing } from '../../../test/harness/without-queueing.ts';
import { hostMs } from '../../runtime/host-clock.ts';
import { XdsActivity } from '../xds/xds-activity.ts';
import { liveProbe, type ProbeEnvironment } from './live-probe.ts';

/** A simulated admin interface. */
interface Admin {
  /** Number of requests for the server state. */
  requests: number;
  ready: { status: number; body: string };
  epoch: number;
  state: string;
  refused: string[];
}

async function adminServer(port = 0): Promise<{ admin: Admin; port: number; server: Server }> {
  const ready = { status: 200, body: 'LIVE\n' };
  const admin: Admin = { requests: 0, ready, epoch: 0, state: 'LIVE', refused: [] };
  const server = createServer((request, response) => {
    if (request.url === '/ready') admin.requests++;
    if (request.url === '/ready') response.writeHead(admin.ready.status).end(admin.ready.body);
    else if (request.url === '/server_info') {
      const { state, epoch } = admin;
      response.end(JSON.stringify({ state, command_line_options: { restart_epoch: epoch } }));
    } else if (request.url?.startsWith('/config_dump')) {
      const configs = admin.refused.map((name) => ({ name, error_state: { details: 'no certificate' } }));
      response.end(JSON.stringify({ configs }));
    } else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', () => resolve()));
  onTestFinished(() => void server.close());
  return { admin, port: (server.address() as { port: number }).port, server };
}

function probing(
  port: number,
  epoch: number,
  {
    isProbeRequested: isRequested = false,
    startedAtMs = hostMs(),
    ...options
  }: Partial<ProbeEnvironment> & { isProbeRequested?: boolean; startedAtMs?: number } = {},
): {
  next: (type: string) => Promise<EventObject & Record<string, unknown>>;
  requestProbe: (asItIs?: boolean) => void;
  /** Returns why Envoy is not live. */
  why: () => Promise<string>;
  events: EventObject[];
} {
  const events: (EventObject & Record<string, unknown>)[] = [];
  const probe = liveProbe({
    adminAt,
    discoveryAddress: undefined,
    xds: new XdsActivity(),
    ...options,
  });
  const parent = setup({ actors: { probe } }).createMachine({
    invoke: {
      id: 'probe',
      src: 'probe',
      input: { epoch, baseId: 1, adminPort: port, listeners: epoch === 0, isProbeRequested: isRequested, startedAtMs },
    },
    on: { '*': { actions: ({ event }) => void events.push(event as EventObject & Record<string, unknown>) } },
  });
  const actor = createActor(parent).start();
  onTestFinished(() => void actor.stop());
  return {
    events,
    requestProbe: (asItIs = false) =>
      actor.getSnapshot().children.probe?.send({ type: 'probe.run', acceptsMissingListeners: asItIs }),
    async why() {
      actor.getSnapshot().children.probe?.send({ type: 'probe.explain' });
      return String((await next('probe.waiting')).reason);
    },
    next,
  };
  async function next(type: string): Promise<EventObject & Record<string, unknown>> {
    for (let waited = 0; waited < 5_000; waited += 10) {
      const matchingEvent = events.find((event) => event.type === type);
      if (matchingEvent !== undefined) return matchingEvent;
      await sleep(10);
    }
    throw new Error(`no ${type} in 5 s; told were ${JSON.stringify(events)}`);
  }
}

test('reports a live epoch once', async () => {
  const { port } = await adminServer();
  const { next, events } = probing(port, 0);
  expect(await next('probe.passed')).toMatchObject({ timeToLiveMs: expect.any(Number) });
  await sleep(200);
  expect(events).toHaveLength(1);
});

test('reports for how long the epoch can have been live: since its start or its last response that was not LIVE', async () => {
  const { port, admin } = await adminServer();
  const { next } = probing(port, 0, { startedAtMs: hostMs() - 5_000 });
  expect((await next('probe.passed')).unseenMs).toBeGreaterThanOrEqual(5_000);
  admin.ready = { status: 503, body: 'INITIALIZING\n' };
  const laterProbe = probing(port, 0, { startedAtMs: hostMs() - 5_000 });
  await eventually('it was probed', () => admin.requests > 3);
  admin.ready = { status: 200, body: 'LIVE\n' };
  expect((await laterProbe.next('probe.passed')).unseenMs).toBeLessThan(5_000);
});

test('reports the result of a probe that was requested before the process started', async () => {
  const { port, admin } = await adminServer();
  admin.ready = { status: 503, body: 'INITIALIZING\n' };
  const { next, events } = probing(port, 0, { isProbeRequested: true });
  expect(await next('probe.failed')).toMatchObject({ reason: expect.stringContaining('INITIALIZING') });
  admin.ready = { status: 200, body: 'LIVE\n' };
  await next('probe.passed');
  expect(events).toHaveLength(2);
});

test('probes frequently in the first second of an epoch, then every 250 ms', async () => {
  let admin!: Admin;
  const untilProbed15Times = async (): Promise<number> => {
    const server = await adminServer();
    admin = server.admin;
    admin.ready = { status: 503, body: 'INITIALIZING\n' };
    // Client and server are in this process.
    return msWithoutQueueing([process.pid], async () => {
      probing(server.port, 0);
      await eventually('it is probed', () => admin.requests > 14, { everyMs: 5 });
    });
  };
  expect(await bestOf(5, 1_000, untilProbed15Times)).toBeLessThan(1_000);
  await sleep(2_000);
  const [previousRequests, since] = [admin.requests, performance.now()];
  await sleep(1_000);
  expect(admin.requests - previousRequests).toBeLessThan((8 * (performance.now() - since)) / 1_000);
});

test('probes an admin port without a listener until it responds', async () => {
  const port = await freePort();
  const { next, events } = probing(port, 0);
  await sleep(200);
  expect(events).toEqual([]);
  await adminServer(port);
  await next('probe.passed');
});

test('does not attribute a response of the parent to the child (F13)', async () => {
  const { admin, port } = await adminServer();
  const { next, why } = probing(port, 1);
  expect(await why()).toBe(`127.0.0.1:${port} is the admin interface of epoch 0`);
  admin.epoch = 1;
  await next('probe.passed');
});

test('does not combine responses of parent and child when the admin port moves between two requests', async () => {
  const { admin, port } = await adminServer();
  admin.epoch = 1;
  admin.state = 'INITIALIZING';
  const { next, events, why } = probing(port, 1);
  expect(await why()).toBe('INITIALIZING');
  expect(events.some(({ type }) => type === 'probe.passed')).toBe(false);
  admin.state = 'LIVE';
  await next('probe.passed');
});

test('reports an epoch that waits for an unreachable control plane', async () => {
  const discoveryAddress = `127.0.0.1:${await freePort()}`;
  const { admin, port } = await adminServer();
  admin.ready = { status: 503, body: 'INITIALIZING\n' };
  const { why } = probing(port, 0, { discoveryAddress });
  expect(await why()).toBe(`INITIALIZING: control plane ${discoveryAddress} is unreachable (connection refused)`);
});

test.each([
  [{}, 'is connected and has sent no xDS response yet'],
  [{ responses: 1 }, 'is connected and has not sent all resources yet'],
  [{ trouble: 'UNAUTHENTICATED: no' }, 'failed: UNAUTHENTICATED: no'],
])('reports the progress of the xDS stream with a reachable control plane: %o', async (activity, progressText) => {
  const { admin, port } = await adminServer();
  admin.ready = { status: 503, body: 'INITIALIZING\n' };
  const discoveryAddress = `127.0.0.1:${port}`;
  const { why } = probing(port, 0, { discoveryAddress, xds: Object.assign(new XdsActivity(), activity) });
  expect(await why()).toMatch(new RegExp(`^INITIALIZING: .*control plane ${discoveryAddress} ${progressText}$`));
});

test('reports an epoch that waits for the certificate of the workload, and why it was not obtained', async () => {
  const { admin, port } = await adminServer();
  admin.ready = { status: 503, body: 'INITIALIZING\n' };
  let missingCertificate: string | undefined = 'requested lifetime must be at most 120 s';
  const options = { discoveryAddress: `127.0.0.1:${port}`, missingCertificate: () => missingCertificate };
  const { why } = probing(port, 0, options);
  expect(await why()).toBe('INITIALIZING: the workload has no certificate (requested lifetime must be at most 120 s)');
  missingCertificate = undefined;
  expect(await probing(port, 0, options).why()).toContain('has sent no xDS response yet');
});

test('reports a live epoch with missing listeners as incomplete, once per reason', async () => {
  const { admin, port } = await adminServer();
  admin.refused = ['tls'];
  const { next, events, requestProbe } = probing(port, 0);
  expect(await next('probe.incomplete')).toMatchObject({
    reason: 'LIVE, but Envoy rejected 1 listener, first tls: no certificate',
  });
  requestProbe();
  expect(await next('probe.failed')).toMatchObject({
    reason: 'LIVE, but Envoy rejected 1 listener, first tls: no certificate',
  });
  await sleep(200);
  expect(events).toHaveLength(2);
  admin.refused = ['tls', 'other'];
  await eventually('it is told anew', () => events.length > 2);
  expect(events[2]).toMatchObject({
    type: 'probe.incomplete',
    reason: expect.stringContaining('rejected 2 listeners'),
  });
  admin.refused = [];
  await next('probe.passed');
});

test('passes a probe that is requested to ignore rejected listeners', async () => {
  const { admin, port } = await adminServer();
  admin.refused = ['tls'];
  const { next, requestProbe } = probing(port, 0);
  await next('probe.incomplete');
  requestProbe(true);
  expect(await next('probe.passed')).toMatchObject({ timeToLiveMs: expect.any(Number) });
});

test('reports an epoch as live despite rejected listeners if listeners are not checked', async () => {
  const { admin, port } = await adminServer();
  admin.epoch = 1;
  admin.refused = ['tls'];
  const { next } = probing(port, 1);
  await next('probe.passed');
});

test('responds to a requested probe immediately, and reports the live epoch once', async () => {
  const { admin, port } = await adminServer();
  admin.ready = { status: 503, body: 'INITIALIZING\n' };
  const { events, next, requestProbe } = probing(port, 0);
  requestProbe();
  expect(await next('probe.failed')).toMatchObject({ reason: 'INITIALIZING' });
  // The pause between the rounds is now 250 ms.
  await sleep(1_500);
  admin.ready = { status: 200, body: 'LIVE\n' };
  const took = await msWithoutQueueing([process.pid], async () => {
    requestProbe();
    await next('probe.passed');
  });
  expect(took).toBeLessThan(200);
  await sleep(400);
  expect(events.map(({ type }) => type)).toEqual(['probe.failed', 'probe.passed']);
});

/** An admin interface that never responds. */
async function silentAdmin(): Promise<number> {
  const server = createServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as { port: number }).port;
}

test('reports a busy child as live within its deadline when its flag in shared memory is cleared', async () => {
  const port = await silentAdmin();
  const untilReported = async (): Promise<number> => {
    let mark = false;
    const { next, requestProbe, events } = probing(port, 1, { isMarkedInitializing: () => mark });
    // No probe runs within this time.
    mark = true;
    await sleep(40);
    requestProbe();
    await sleep(700);
    expect(events).toEqual([]);
    mark = false;
    const requestedAt = performance.now();
    requestProbe();
    await next('probe.passed');
    return performance.now() - requestedAt;
  };
  // The restart chart waits for one second.
  expect(await bestOf(5, 1_000, untilReported)).toBeLessThan(1_000);
});

test.each([
  ['that was set before its process started', [true, true, false]],
  ['of an unknown layout', [undefined]],
  ['that was never set', [false]],
  ['that is still set', [false, true]],
] as const)('does not report a busy child as live because of a flag %s', async (_, marks) => {
  const remainingMarks = [...marks];
  const isMarkedInitializing = () => (remainingMarks.length > 1 ? remainingMarks.shift() : remainingMarks[0]);
  const { requestProbe, events } = probing(await silentAdmin(), 1, { isMarkedInitializing });
  for (const _mark of marks) requestProbe();
  await sleep(1_200);
  expect(events).toEqual([]);
});

test('reports an epoch without a parent as live only after a response of the admin interface', async () => {
  const { admin, port } = await adminServer();
  admin.ready = { status: 503, body: 'INITIALIZING\n' };
  let mark = false;
  const environment = { isMarkedInitializing: () => mark };
  const [child, first] = [probing(port, 1, environment), probing(await silentAdmin(), 0, environment)];
  mark = true;
  await sleep(40);
  child.requestProbe();
  expect(await child.next('probe.failed')).toMatchObject({ reason: 'INITIALIZING' });
  mark = false;
  first.requestProbe();
  await sleep(800);
  expect(first.events).toEqual([]);
});
