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

/** An admin interface that says what the test wants. */
interface Admin {
  /** How often it was asked for its state. */
  asked: number;
  ready: { status: number; body: string };
  epoch: number;
  state: string;
  refused: string[];
}

async function adminServer(port = 0): Promise<{ admin: Admin; port: number; server: Server }> {
  const ready = { status: 200, body: 'LIVE\n' };
  const admin: Admin = { asked: 0, ready, epoch: 0, state: 'LIVE', refused: [] };
  const server = createServer((request, response) => {
    if (request.url === '/ready') admin.asked++;
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
    asked = false,
    startedAtMs = hostMs(),
    ...options
  }: Partial<ProbeEnvironment> & { asked?: boolean; startedAtMs?: number } = {},
): {
  next: (type: string) => Promise<EventObject & Record<string, unknown>>;
  look: (asItIs?: boolean) => void;
  /** What it waits for. */
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
      input: { epoch, baseId: 1, adminPort: port, listeners: epoch === 0, asked, startedAtMs },
    },
    on: { '*': { actions: ({ event }) => void events.push(event as EventObject & Record<string, unknown>) } },
  });
  const actor = createActor(parent).start();
  onTestFinished(() => void actor.stop());
  return {
    events,
    look: (asItIs = false) => actor.getSnapshot().children.probe?.send({ type: 'probe.run', asItIs }),
    async why() {
      actor.getSnapshot().children.probe?.send({ type: 'probe.explain' });
      return String((await next('probe.waiting')).reason);
    },
    next,
  };
  async function next(type: string): Promise<EventObject & Record<string, unknown>> {
    for (let waited = 0; waited < 5_000; waited += 10) {
      const found = events.find((event) => event.type === type);
      if (found !== undefined) return found;
      await sleep(10);
    }
    throw new Error(`no ${type} in 5 s; told were ${JSON.stringify(events)}`);
  }
}

test('an epoch that is live is told once', async () => {
  const { port } = await adminServer();
  const { next, events } = probing(port, 0);
  expect(await next('probe.passed')).toMatchObject({ timeToLiveMs: expect.any(Number) });
  await sleep(200);
  expect(events).toHaveLength(1);
});

test('it may have been live since its start, or since the last answer that said it was not', async () => {
  const { port, admin } = await adminServer();
  const { next } = probing(port, 0, { startedAtMs: hostMs() - 5_000 });
  expect((await next('probe.passed')).unseenMs).toBeGreaterThanOrEqual(5_000);
  admin.ready = { status: 503, body: 'INITIALIZING\n' };
  const later = probing(port, 0, { startedAtMs: hostMs() - 5_000 });
  await eventually('it was asked', () => admin.asked > 3);
  admin.ready = { status: 200, body: 'LIVE\n' };
  expect((await later.next('probe.passed')).unseenMs).toBeLessThan(5_000);
});

test('who was asked before there was a process says what the first look finds', async () => {
  const { port, admin } = await adminServer();
  admin.ready = { status: 503, body: 'INITIALIZING\n' };
  const { next, events } = probing(port, 0, { asked: true });
  expect(await next('probe.failed')).toMatchObject({ reason: expect.stringContaining('INITIALIZING') });
  admin.ready = { status: 200, body: 'LIVE\n' };
  await next('probe.passed');
  expect(events).toHaveLength(2);
});

test('in the second in which most become live the looks come one after the other, later ones take their time', async () => {
  let admin!: Admin;
  const untilAsked15Times = async (): Promise<number> => {
    const server = await adminServer();
    admin = server.admin;
    admin.ready = { status: 503, body: 'INITIALIZING\n' };
    // Both are of this process.
    return msWithoutQueueing([process.pid], async () => {
      probing(server.port, 0);
      await eventually('it is asked', () => admin.asked > 14, { everyMs: 5 });
    });
  };
  expect(await bestOf(5, 1_000, untilAsked15Times)).toBeLessThan(1_000);
  await sleep(2_000);
  const [before, since] = [admin.asked, performance.now()];
  await sleep(1_000);
  expect(admin.asked - before).toBeLessThan((8 * (performance.now() - since)) / 1_000);
});

test('nobody at the admin port is tolerated until somebody is there', async () => {
  const port = await freePort();
  const { next, events } = probing(port, 0);
  await sleep(200);
  expect(events).toEqual([]);
  await adminServer(port);
  await next('probe.passed');
});

test('the parent’s answer does not count for the child (F13)', async () => {
  const { admin, port } = await adminServer();
  const { next, why } = probing(port, 1);
  expect(await why()).toBe(`127.0.0.1:${port} is the admin interface of epoch 0`);
  admin.epoch = 1;
  await next('probe.passed');
});

test('a child that takes the admin port between two questions is not live by its parent’s answer to the first one', async () => {
  const { admin, port } = await adminServer();
  admin.epoch = 1;
  admin.state = 'INITIALIZING';
  const { next, events, why } = probing(port, 1);
  expect(await why()).toBe('INITIALIZING');
  expect(events.some(({ type }) => type === 'probe.passed')).toBe(false);
  admin.state = 'LIVE';
  await next('probe.passed');
});

test('an epoch that waits for a control plane which is away says so', async () => {
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
])('an epoch whose control plane is reached says how far its xDS stream is: %o', async (activity, how) => {
  const { admin, port } = await adminServer();
  admin.ready = { status: 503, body: 'INITIALIZING\n' };
  const discoveryAddress = `127.0.0.1:${port}`;
  const { why } = probing(port, 0, { discoveryAddress, xds: Object.assign(new XdsActivity(), activity) });
  expect(await why()).toMatch(new RegExp(`^INITIALIZING: .*control plane ${discoveryAddress} ${how}$`));
});

test('an epoch that is live without listeners that it refused is told as such, once for what it lacks', async () => {
  const { admin, port } = await adminServer();
  admin.refused = ['tls'];
  const { next, events, look } = probing(port, 0);
  expect(await next('probe.incomplete')).toMatchObject({
    reason: 'LIVE, but Envoy rejected 1 listener, first tls: no certificate',
  });
  look();
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

test('asked for it as it is, it is live all the same', async () => {
  const { admin, port } = await adminServer();
  admin.refused = ['tls'];
  const { next, look } = probing(port, 0);
  await next('probe.incomplete');
  look(true);
  expect(await next('probe.passed')).toMatchObject({ timeToLiveMs: expect.any(Number) });
});

test('where listeners are not asked for, who refused one is live at once', async () => {
  const { admin, port } = await adminServer();
  admin.epoch = 1;
  admin.refused = ['tls'];
  const { next } = probing(port, 1);
  await next('probe.passed');
});

test('told to look it says at once whether the epoch is live, and that it is only once', async () => {
  const { admin, port } = await adminServer();
  admin.ready = { status: 503, body: 'INITIALIZING\n' };
  const { events, next, look } = probing(port, 0);
  look();
  expect(await next('probe.failed')).toMatchObject({ reason: 'INITIALIZING' });
  // The pauses between the rounds have grown to a quarter of a second.
  await sleep(1_500);
  admin.ready = { status: 200, body: 'LIVE\n' };
  const took = await msWithoutQueueing([process.pid], async () => {
    look();
    await next('probe.passed');
  });
  expect(took).toBeLessThan(200);
  await sleep(400);
  expect(events.map(({ type }) => type)).toEqual(['probe.failed', 'probe.passed']);
});

/** An admin interface that takes every question and answers none. */
async function silentAdmin(): Promise<number> {
  const server = createServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as { port: number }).port;
}

test('a child that is busy is live when the mark that it has set in shared memory is cleared, and says so in time', async () => {
  const port = await silentAdmin();
  const untilSaid = async (): Promise<number> => {
    let mark = false;
    const { next, look, events } = probing(port, 1, { isMarkedInitializing: () => mark });
    // No look falls into that.
    mark = true;
    await sleep(40);
    look();
    await sleep(700);
    expect(events).toEqual([]);
    mark = false;
    const asked = performance.now();
    look();
    await next('probe.passed');
    return performance.now() - asked;
  };
  // The restart's chart waits for a second.
  expect(await bestOf(5, 1_000, untilSaid)).toBeLessThan(1_000);
});

test.each([
  ['that was there before its process', [true, true, false]],
  ['of a layout that nobody knows', [undefined]],
  ['that was never set', [false]],
  ['that is set', [false, true]],
] as const)('a child that is busy is not live by a mark %s', async (_, marks) => {
  const left = [...marks];
  const isMarkedInitializing = () => (left.length > 1 ? left.shift() : left[0]);
  const { look, events } = probing(await silentAdmin(), 1, { isMarkedInitializing });
  for (const _mark of marks) look();
  await sleep(1_200);
  expect(events).toEqual([]);
});

test('an epoch without a parent is not live by a mark, and an admin interface that answers is believed', async () => {
  const { admin, port } = await adminServer();
  admin.ready = { status: 503, body: 'INITIALIZING\n' };
  let mark = false;
  const environment = { isMarkedInitializing: () => mark };
  const [child, first] = [probing(port, 1, environment), probing(await silentAdmin(), 0, environment)];
  mark = true;
  await sleep(40);
  child.look();
  expect(await child.next('probe.failed')).toMatchObject({ reason: 'INITIALIZING' });
  mark = false;
  first.look();
  await sleep(800);
  expect(first.events).toEqual([]);
});
