/** Responses to a readiness probe, from the start of the agent to its end. */
import { expect, test } from 'vitest';
import { AgentWorld } from '../../simulation/agent-world.ts';
import { becomesLive, checkEveryWorld, crashEnd, drainingWorld, endProcess, replacingWorld } from './scenes.ts';

checkEveryWorld();

const readyResponse = { ready: true, reason: '' };

test('the agent becomes ready when an Envoy serves and its admin interface reports ready', async () => {
  const world = new AgentWorld();
  await world.settle();
  expect(await world.requestReadiness()).toEqual({ ready: false, reason: 'no Envoy has served yet' });
  await becomesLive(world);
  expect(await world.requestReadiness()).toEqual(readyResponse);
  world.envoyLive = false;
  expect(await world.requestReadiness()).toEqual({ ready: false, reason: 'Envoy admin interface: 503' });
  expect(world.events('envoy.probe')).toEqual([
    { type: 'envoy.probe', request: 1, at: 'admin' },
    { type: 'envoy.probe', request: 2, at: 'admin' },
  ]);
});

test('a response always names its request', async () => {
  const world = await AgentWorld.startServing();
  await world.requestReadiness();
  await world.certificate('digest-1');
  await world.requestReadiness();
  await endProcess(world, world.newestProcess(), { code: 1 });
  await endProcess(world, world.process('epoch-0'), crashEnd);
  await world.requestReadiness();
  await world.passTime(400);
  world.signal('SIGTERM');
  await world.requestReadiness();
  expect(world.events('readiness.respond')).toEqual([
    // A response of the admin interface is cached for a while; a port's response, or one without an Envoy, is not.
    { type: 'readiness.respond', request: 0, ready: true, reason: '', heldMs: 5_000, listenersHeldMs: 10_000 },
    { type: 'readiness.respond', request: 1, ready: true, reason: '', heldMs: 0, listenersHeldMs: 0 },
    { type: 'readiness.respond', request: 2, ready: false, reason: 'Envoy ended', heldMs: 0, listenersHeldMs: 0 },
    {
      type: 'readiness.respond',
      request: 3,
      ready: false,
      reason: 'agent is stopping',
      heldMs: 0,
      listenersHeldMs: 0,
    },
  ]);
});

test("a response from the admin port during a hand-over is the child's, so the serving Envoy is probed at its own port", async () => {
  const world = await AgentWorld.startServing();
  world.respondsLate = true;
  world.envoyLive = false;
  world.changeFiles('digest-1');
  await world.passTime(9_000);
  await world.requestReadiness();
  await world.passTime(1_000);
  world.respond();
  expect(world.readiness).toEqual([]);
  world.respond();
  expect(world.readiness).toEqual([readyResponse]);
  expect(world.events('envoy.probe').map(({ at }) => at)).toEqual(['admin', 'port']);
});

test('a cached response is invalidated by the start or end of a hand-over, a new or exited Envoy, and a stop of the agent', async () => {
  const changes: Record<string, (world: AgentWorld) => Promise<unknown>> = {
    'a hand-over begins': (world) => world.certificate('digest-1'),
    'Envoy ends': (world) => endProcess(world, world.newestProcess(), crashEnd),
    'the agent ends': async (world) => world.signal('SIGTERM'),
  };
  for (const [name, happens] of Object.entries(changes)) {
    const world = await AgentWorld.startServing();
    await world.requestReadiness();
    expect(world.events('readiness.invalidate'), name).toEqual([]);
    await happens(world);
    expect(world.events('readiness.invalidate'), name).toHaveLength(1);
  }
  // The child failed and the previous epoch keeps serving: its responses are cached again until the next child starts.
  const world = await AgentWorld.startServing();
  await world.certificate('digest-1');
  await endProcess(world, world.newestProcess(), { code: 1 });
  await world.requestReadiness();
  expect(world.events('readiness.respond').at(-1)).toMatchObject({ ready: true, heldMs: 5_000 });
  expect(world.events('readiness.invalidate')).toHaveLength(1);
  await world.nextStart();
  expect(world.events('readiness.invalidate')).toHaveLength(2);
});

test('an Envoy is not ready until a probe finds that it serves an application port (§6.3)', async () => {
  const world = await AgentWorld.startServing({ awaitsApplication: true });
  const unserved = 'no inbound listener for any of the application’s ports (8080)';
  world.unservedReason = unserved;
  expect(await world.requestReadiness()).toEqual({ ready: false, reason: unserved });
  expect(await world.requestReadiness()).toEqual({ ready: false, reason: unserved });
  world.unservedReason = '';
  expect(await world.requestReadiness()).toEqual(readyResponse);
  // The listeners of an Envoy that was ready may disappear, because they change with its services.
  world.unservedReason = unserved;
  expect(await world.requestReadiness()).toEqual(readyResponse);
  await world.certificate('digest-1');
  await becomesLive(world);
  expect(await world.requestReadiness()).toEqual({ ready: false, reason: unserved });
  // Envoy's own status has priority.
  world.envoyLive = false;
  expect(await world.requestReadiness()).toEqual({ ready: false, reason: 'Envoy admin interface: 503' });
});

test('a probe of the Envoy port instead of the admin interface does not check application ports (§6.3)', async () => {
  const world = await AgentWorld.startServing({ awaitsApplication: true });
  await world.certificate('digest-1');
  await endProcess(world, world.newestProcess(), { code: 1 });
  world.isAdminClosed = true;
  expect(await world.requestReadiness()).toEqual(readyResponse);
  world.isAdminClosed = false;
  world.unservedReason = 'no inbound listener';
  expect(await world.requestReadiness()).toEqual({ ready: false, reason: 'no inbound listener' });
});

test('an Envoy whose application ports are an empty list is not checked for ports (§6.3)', async () => {
  const world = await AgentWorld.startServing();
  world.unservedReason = 'no inbound listener';
  expect(await world.requestReadiness()).toEqual(readyResponse);
});

test('the agent with DNS is ready after the first table, and reports problems with Envoy first (§6.3, §9)', async () => {
  const world = await AgentWorld.startServing({ dns: true, xdsSocket: './XDS' });
  const missingNames = { ready: false, reason: 'control plane has not sent the DNS name table yet' };
  expect(await world.requestReadiness()).toEqual(missingNames);
  world.envoyLive = false;
  expect(await world.requestReadiness()).toEqual({ ready: false, reason: 'Envoy admin interface: 503' });
  world.envoyLive = true;
  await world.certificate('digest-1');
  expect(await world.requestReadiness()).toEqual(missingNames);
  world.sendFromDns({ type: 'name-table.received', names: 0, skipped: 0 });
  expect(await world.requestReadiness()).toEqual(readyResponse);
  // The control plane may send another table, or be unreachable: the last one is kept.
  world.sendFromDns({ type: 'name-table.received', names: 3, skipped: 0 });
  expect(await world.requestReadiness()).toEqual(readyResponse);
  expect(world.events('names.available')).toHaveLength(1);
});

test('a table that is received while the port is lost counts when the port is open again (§9)', async () => {
  const world = await AgentWorld.startServing({ dns: true, xdsSocket: './XDS' });
  world.dnsResult = undefined;
  world.sendFromDns({ type: 'dns-port.failed', reason: 'EBADF' });
  await world.passTime(500);
  world.sendFromDns({ type: 'name-table.received', names: 3, skipped: 0 });
  expect(await world.requestReadiness()).toEqual(readyResponse);
});

test('the agent is ready without DNS names if a user-provided bootstrap is used', async () => {
  const world = await AgentWorld.startServing({ dns: true, xdsSocket: '' });
  expect(await world.requestReadiness()).toEqual(readyResponse);
});

const tls = { name: 'tls', reason: 'no certificate' };
const lateResource = { name: 'late', reason: 'no such field' };

test('a resource that is missing since the start is reported until Envoy has it, unlike a later rejection (§6.3)', async () => {
  const world = await AgentWorld.startServing();
  expect(await world.requestReadiness()).toEqual(readyResponse);
  world.refusedListeners = [lateResource];
  expect(await world.requestReadiness()).toEqual(readyResponse);
  // The later rejection does not count for the next Envoy either, which lacks another listener.
  await world.certificate('digest-1');
  world.refusedListeners = [lateResource, tls];
  await becomesLive(world);
  const notReady = { ready: false, reason: 'Envoy rejected listeners: tls: no certificate' };
  expect(await world.requestReadiness()).toEqual(notReady);
  world.refusedListeners = [tls];
  expect(await world.requestReadiness()).toEqual(notReady);
  // A resource whose absence made one Envoy not ready is required for the next one, too.
  await world.certificate('digest-2');
  await becomesLive(world);
  expect(await world.requestReadiness()).toEqual(notReady);
  world.refusedListeners = [];
  expect(await world.requestReadiness()).toEqual(readyResponse);
  world.refusedListeners = [tls];
  expect(await world.requestReadiness()).toEqual(readyResponse);
});

test('a report names at most three missing listeners (§6.3)', async () => {
  const world = await AgentWorld.startServing();
  world.refusedListeners = ['a', 'b', 'c', 'd', 'e'].map((name) => ({
    name,
    reason: name === 'b' ? '' : `no ${name}`,
  }));
  await world.certificate('digest-1');
  await becomesLive(world);
  expect((await world.requestReadiness()).reason).toBe('Envoy rejected listeners: a: no a; b; c: no c, and 2 more');
});

test('an Envoy that is live without a rejected listener is not ready, even while its child starts', async () => {
  const world = await AgentWorld.startServing();
  await world.certificate('digest-1');
  world.refusedListeners = [tls];
  await becomesLive(world);
  const notReady = { ready: false, reason: 'Envoy rejected listeners: tls: no certificate' };
  expect(await world.requestReadiness()).toEqual(notReady);
  await world.certificate('digest-2');
  expect(await world.requestReadiness()).toEqual(notReady);
  world.refusedListeners = [];
  await becomesLive(world);
  expect(await world.requestReadiness()).toEqual(readyResponse);
});

test('an Envoy is not ready during a hand-over if its port does not respond', async () => {
  const world = await AgentWorld.startServing();
  await world.certificate('digest-1');
  world.portResponds = false;
  expect(await world.requestReadiness()).toEqual({ ready: false, reason: 'Envoy port: no answer' });
});

test('an epoch is probed at its own port if its child took the admin port and exited', async () => {
  const world = await AgentWorld.startServing();
  await world.certificate('digest-1');
  world.isAdminClosed = true;
  await endProcess(world, world.newestProcess(), { code: 1 });
  expect(await world.requestReadiness()).toEqual(readyResponse);
  world.portResponds = false;
  expect(await world.requestReadiness()).toEqual({ ready: false, reason: 'Envoy port: no answer' });
  world.portResponds = true;
  await world.nextStart();
  expect(await world.requestReadiness()).toEqual(readyResponse);
  await becomesLive(world);
  world.isAdminClosed = false;
  await world.requestReadiness();
  expect(world.events('envoy.probe').map(({ at }) => at)).toEqual(['admin or port', 'admin or port', 'port', 'admin']);
});

test('an Envoy that starts serving during a probe is probed again, and the earlier response is ignored', async () => {
  const world = await replacingWorld();
  world.respondsLate = true;
  world.portResponds = false;
  await world.requestReadiness();
  const former = world.respond;
  await becomesLive(world);
  // The previous Envoy closes its listeners, and with them the connection of the probe.
  former();
  expect(world.readiness).toEqual([]);
  world.respond();
  expect(world.readiness).toEqual([readyResponse]);
  expect(world.events('envoy.probe').map(({ request, at }) => [request, at])).toEqual([
    [0, 'port'],
    [0, 'admin'],
  ]);
});

test('a response from an Envoy that exits during the probe is ignored', async () => {
  const world = await AgentWorld.startServing();
  world.respondsLate = true;
  await world.requestReadiness();
  await endProcess(world, world.newestProcess(), crashEnd);
  world.respond();
  expect(world.readiness).toEqual([{ ready: false, reason: 'Envoy ended' }]);
});

test('an Envoy that does not respond for 5 s is not ready, and its late response is ignored', async () => {
  const world = await AgentWorld.startServing();
  world.respondsLate = true;
  await world.requestReadiness();
  const lateRespond = world.respond;
  await world.passTime(4_999);
  expect(world.readiness).toEqual([]);
  await world.passTime(1);
  const noResponse = { ready: false, reason: 'no response within 5000 ms' };
  expect(world.readiness).toEqual([noResponse]);
  await world.requestReadiness();
  lateRespond();
  expect(world.readiness).toEqual([noResponse]);
  world.respond();
  expect(world.readiness).toEqual([noResponse, readyResponse]);
});

test('the limit of 5 s is not reset when another Envoy starts serving', async () => {
  const world = await AgentWorld.startServing();
  world.respondsLate = true;
  world.changeFiles('digest-1');
  await world.passTime(7_000);
  await world.requestReadiness();
  await world.passTime(4_999);
  expect(world.events('handover.began')).toHaveLength(1);
  expect(world.readiness).toEqual([]);
  await world.passTime(1);
  expect(world.readiness).toEqual([{ ready: false, reason: 'no response within 5000 ms' }]);
});

test('a response that is received while the agent stops is ignored', async () => {
  const world = await AgentWorld.startServing();
  world.respondsLate = true;
  await world.requestReadiness();
  world.signal('SIGTERM');
  world.respond();
  expect(world.readiness).toEqual([{ ready: false, reason: 'agent is stopping' }]);
});

test('a hand-over is reported with its child, and a new serving epoch with name, base ID, admin port and process', async () => {
  const world = await replacingWorld();
  await becomesLive(world);
  expect(world.events('handover.began')).toEqual([
    { type: 'handover.began', name: 'epoch-1' },
    { type: 'handover.began', name: 'epoch-0b' },
  ]);
  expect(world.events('serving.began')).toEqual([
    { type: 'serving.began', name: 'epoch-0', epoch: 0, baseId: 7, adminPort: 15_000, pid: 1001 },
    { type: 'serving.began', name: 'epoch-0b', epoch: 0, baseId: 8, adminPort: 16_000, pid: 1003 },
  ]);
});

test("a draining parent's exit does not affect the status", async () => {
  const world = await drainingWorld();
  await world.passTime(60_000);
  await endProcess(world, world.process('epoch-0'));
  expect(world.events('serving.ended')).toEqual([]);
  expect(await world.requestReadiness()).toEqual(readyResponse);
});

test('a drain request affects only the serving Envoy, and the agent keeps running (§6.2)', async () => {
  const world = new AgentWorld();
  await world.settle();
  world.orderDrain();
  expect(world.events('envoy.drain')).toEqual([]);
  await becomesLive(world);
  world.orderDrain();
  expect(world.events('envoy.drain')).toHaveLength(1);
  expect(await world.requestReadiness()).toEqual(readyResponse);
  // The child has the admin port, but the order was not for the child.
  await world.certificate('digest-1');
  world.orderDrain();
  expect(world.events('envoy.drain')).toHaveLength(1);
  await endProcess(world, world.newestProcess(), { code: 1 });
  world.orderDrain();
  expect(world.events('envoy.drain')).toHaveLength(2);
  world.signal('SIGTERM');
  world.orderDrain();
  expect(world.events('envoy.drain')).toHaveLength(2);
});

test('the agent without Envoy is ready immediately or after the first awaited DNS names, until it stops (§1.3 DISABLE_ENVOY)', async () => {
  const world = new AgentWorld({ runsEnvoy: false });
  await world.settle();
  expect(await world.requestReadiness()).toEqual(readyResponse);
  expect(world.events('epoch.start')).toEqual([]);

  const awaiting = new AgentWorld({ runsEnvoy: false, dns: true, xdsSocket: './XDS' });
  await awaiting.settle();
  expect(await awaiting.requestReadiness()).toEqual({
    ready: false,
    reason: 'control plane has not sent the DNS name table yet',
  });
  awaiting.sendFromDns({ type: 'name-table.received', names: 0, skipped: 0 });
  expect(await awaiting.requestReadiness()).toEqual(readyResponse);
});

test.each(['SIGTERM', 'quit'] as const)(
  'the agent without Envoy exits immediately with 0 on %s (§1.3 DISABLE_ENVOY)',
  async (stopKind) => {
    const world = new AgentWorld({ runsEnvoy: false });
    await world.settle();
    if (stopKind === 'quit') world.requestQuit();
    else world.signal('SIGTERM');
    await world.settle();
    expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
  },
);
