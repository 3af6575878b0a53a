/** What a readiness probe is told, from the first moment to the last. */
import { expect, test } from 'vitest';
import { AgentWorld } from '../../simulation/agent-world.ts';
import { checkEveryWorld, crashed, ends, goesLive, handedOver, tainted } from './scenes.ts';

checkEveryWorld();

const ready = { ready: true, reason: '' };

test('not ready before an Envoy serves, ready when its admin interface says so', async () => {
  const world = new AgentWorld();
  await world.settle();
  expect(await world.ask()).toEqual({ ready: false, reason: 'no Envoy has served yet' });
  await goesLive(world);
  expect(await world.ask()).toEqual(ready);
  world.envoyLive = false;
  expect(await world.ask()).toEqual({ ready: false, reason: 'Envoy admin interface: 503' });
  expect(world.events('envoy.probe')).toEqual([
    { type: 'envoy.probe', request: 1, at: 'admin' },
    { type: 'envoy.probe', request: 2, at: 'admin' },
  ]);
});

test('each answer names the call that it answers', async () => {
  const world = await AgentWorld.serving();
  await world.ask();
  await world.certificate('digest-1');
  await world.ask();
  await ends(world, world.newest(), { code: 1 });
  await ends(world, world.process('epoch-0'), crashed);
  await world.ask();
  await world.pass(400);
  world.signal('SIGTERM');
  await world.ask();
  expect(world.events('readiness.respond')).toEqual([
    // Said by the admin interface it holds for a while; by a port, or of nobody, it does not.
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

test('an answer of the admin port that comes during a hand-over is the child’s: the one that serves is asked anew, at its port', async () => {
  const world = await AgentWorld.serving();
  world.answersLate = true;
  world.envoyLive = false;
  world.changeFiles('digest-1');
  await world.pass(9_000);
  await world.ask();
  await world.pass(1_000);
  world.answer();
  expect(world.readiness).toEqual([]);
  world.answer();
  expect(world.readiness).toEqual([ready]);
  expect(world.events('envoy.probe').map(({ at }) => at)).toEqual(['admin', 'port']);
});

test('an answer that is held is outdated by whatever may change it: a hand-over and its end, another Envoy, none, the end of the agent', async () => {
  const changes: Record<string, (world: AgentWorld) => Promise<unknown>> = {
    'a hand-over begins': (world) => world.certificate('digest-1'),
    'Envoy ends': (world) => ends(world, world.newest(), crashed),
    'the agent ends': async (world) => world.signal('SIGTERM'),
  };
  for (const [what, happens] of Object.entries(changes)) {
    const world = await AgentWorld.serving();
    await world.ask();
    expect(world.events('readiness.invalidate'), what).toEqual([]);
    await happens(world);
    expect(world.events('readiness.invalidate'), what).toHaveLength(1);
  }
  // The child has failed, the one before serves on: its answers hold again, until the next child is started.
  const world = await AgentWorld.serving();
  await world.certificate('digest-1');
  await ends(world, world.newest(), { code: 1 });
  await world.ask();
  expect(world.events('readiness.respond').at(-1)).toMatchObject({ ready: true, heldMs: 5_000 });
  expect(world.events('readiness.invalidate')).toHaveLength(1);
  await world.nextStart();
  expect(world.events('readiness.invalidate')).toHaveLength(2);
});

test('§6.3: who serves none of the ports that the application was said to have is not ready; once it was seen, each Envoy anew', async () => {
  const world = await AgentWorld.serving({ awaitsApplication: true });
  const unserved = 'no inbound listener for any of the application’s ports (8080)';
  world.unserved = unserved;
  expect(await world.ask()).toEqual({ ready: false, reason: unserved });
  expect(await world.ask()).toEqual({ ready: false, reason: unserved });
  world.unserved = '';
  expect(await world.ask()).toEqual(ready);
  // Its listeners come and go with its services.
  world.unserved = unserved;
  expect(await world.ask()).toEqual(ready);
  await world.certificate('digest-1');
  await goesLive(world);
  expect(await world.ask()).toEqual({ ready: false, reason: unserved });
  // Envoy's own word comes first.
  world.envoyLive = false;
  expect(await world.ask()).toEqual({ ready: false, reason: 'Envoy admin interface: 503' });
});

test('§6.3: a port that answers in place of the admin interface says nothing of the application', async () => {
  const world = await AgentWorld.serving({ awaitsApplication: true });
  await world.certificate('digest-1');
  await ends(world, world.newest(), { code: 1 });
  world.adminGone = true;
  expect(await world.ask()).toEqual(ready);
  world.adminGone = false;
  world.unserved = 'no inbound listener';
  expect(await world.ask()).toEqual({ ready: false, reason: 'no inbound listener' });
});

test('§6.3: an Envoy whose application was said to have no ports is asked for none', async () => {
  const world = await AgentWorld.serving();
  world.unserved = 'no inbound listener';
  expect(await world.ask()).toEqual(ready);
});

test('§6.3, §9: where names are answered, ready is who has the first table; what is wrong with Envoy is said first', async () => {
  const world = await AgentWorld.serving({ dns: true, xdsSocket: './XDS' });
  const withoutNames = { ready: false, reason: 'control plane has not sent the DNS name table yet' };
  expect(await world.ask()).toEqual(withoutNames);
  world.envoyLive = false;
  expect(await world.ask()).toEqual({ ready: false, reason: 'Envoy admin interface: 503' });
  world.envoyLive = true;
  await world.certificate('digest-1');
  expect(await world.ask()).toEqual(withoutNames);
  world.tellDns({ type: 'name-table.received', names: 0, skipped: 0 });
  expect(await world.ask()).toEqual(ready);
  // The control plane may send others, or be away: what came stays.
  world.tellDns({ type: 'name-table.received', names: 3, skipped: 0 });
  expect(await world.ask()).toEqual(ready);
  expect(world.events('names.available')).toHaveLength(1);
});

test('§9: a table that comes while the port is lost counts when it is open again', async () => {
  const world = await AgentWorld.serving({ dns: true, xdsSocket: './XDS' });
  world.dnsAnswer = undefined;
  world.tellDns({ type: 'dns-port.failed', reason: 'EBADF' });
  await world.pass(500);
  world.tellDns({ type: 'name-table.received', names: 3, skipped: 0 });
  expect(await world.ask()).toEqual(ready);
});

test('a bootstrap of the user’s own is not waited for: no names come with it', async () => {
  const world = await AgentWorld.serving({ dns: true, xdsSocket: '' });
  expect(await world.ask()).toEqual(ready);
});

const tls = { name: 'tls', why: 'no certificate' };
const late = { name: 'late', why: 'no such field' };

test('§6.3: what an Envoy lacked from its start is told until it has it; what it refuses later is not held against it', async () => {
  const world = await AgentWorld.serving();
  expect(await world.ask()).toEqual(ready);
  world.refused = [late];
  expect(await world.ask()).toEqual(ready);
  // Nor against its successor, which lacks something else.
  await world.certificate('digest-1');
  world.refused = [late, tls];
  await goesLive(world);
  const notReady = { ready: false, reason: 'Envoy rejected listeners: tls: no certificate' };
  expect(await world.ask()).toEqual(notReady);
  world.refused = [tls];
  expect(await world.ask()).toEqual(notReady);
  // What one was not ready without, the next one is not ready without either.
  await world.certificate('digest-2');
  await goesLive(world);
  expect(await world.ask()).toEqual(notReady);
  world.refused = [];
  expect(await world.ask()).toEqual(ready);
  world.refused = [tls];
  expect(await world.ask()).toEqual(ready);
});

test('§6.3: of many listeners that Envoy lacks three are named', async () => {
  const world = await AgentWorld.serving();
  world.refused = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ name, why: name === 'b' ? '' : `no ${name}` }));
  await world.certificate('digest-1');
  await goesLive(world);
  expect((await world.ask()).reason).toBe('Envoy rejected listeners: a: no a; b; c: no c, and 2 more');
});

test('an Envoy that lives without a listener that it refused is not ready, also while its child starts', async () => {
  const world = await AgentWorld.serving();
  await world.certificate('digest-1');
  world.refused = [tls];
  await goesLive(world);
  const notReady = { ready: false, reason: 'Envoy rejected listeners: tls: no certificate' };
  expect(await world.ask()).toEqual(notReady);
  await world.certificate('digest-2');
  expect(await world.ask()).toEqual(notReady);
  world.refused = [];
  await goesLive(world);
  expect(await world.ask()).toEqual(ready);
});

test('during a hand-over an Envoy whose port does not answer is not ready', async () => {
  const world = await AgentWorld.serving();
  await world.certificate('digest-1');
  world.portAnswers = false;
  expect(await world.ask()).toEqual({ ready: false, reason: 'Envoy port: no answer' });
});

test('a child that took the admin port with it leaves an epoch that is asked at its port', async () => {
  const world = await AgentWorld.serving();
  await world.certificate('digest-1');
  world.adminGone = true;
  await ends(world, world.newest(), { code: 1 });
  expect(await world.ask()).toEqual(ready);
  world.portAnswers = false;
  expect(await world.ask()).toEqual({ ready: false, reason: 'Envoy port: no answer' });
  world.portAnswers = true;
  await world.nextStart();
  expect(await world.ask()).toEqual(ready);
  await goesLive(world);
  world.adminGone = false;
  await world.ask();
  expect(world.events('envoy.probe').map(({ at }) => at)).toEqual(['admin or port', 'admin or port', 'port', 'admin']);
});

test('an Envoy that serves since the question was put is asked anew: what the one before it says counts no more', async () => {
  const world = await tainted();
  world.answersLate = true;
  world.portAnswers = false;
  await world.ask();
  const former = world.answer;
  await goesLive(world);
  // The one before it closes its listeners, and with them the connection of the question.
  former();
  expect(world.readiness).toEqual([]);
  world.answer();
  expect(world.readiness).toEqual([ready]);
  expect(world.events('envoy.probe').map(({ request, at }) => [request, at])).toEqual([
    [0, 'port'],
    [0, 'admin'],
  ]);
});

test('an answer of an Envoy that has ended meanwhile does not count', async () => {
  const world = await AgentWorld.serving();
  world.answersLate = true;
  await world.ask();
  await ends(world, world.newest(), crashed);
  world.answer();
  expect(world.readiness).toEqual([{ ready: false, reason: 'Envoy ended' }]);
});

test('an Envoy that says nothing for five seconds is not ready, and its word counts no more when it comes', async () => {
  const world = await AgentWorld.serving();
  world.answersLate = true;
  await world.ask();
  const late = world.answer;
  await world.pass(4_999);
  expect(world.readiness).toEqual([]);
  await world.pass(1);
  const silent = { ready: false, reason: 'no response within 5000 ms' };
  expect(world.readiness).toEqual([silent]);
  await world.ask();
  late();
  expect(world.readiness).toEqual([silent]);
  world.answer();
  expect(world.readiness).toEqual([silent, ready]);
});

test('the five seconds go on when another Envoy serves meanwhile', async () => {
  const world = await AgentWorld.serving();
  world.answersLate = true;
  world.changeFiles('digest-1');
  await world.pass(7_000);
  await world.ask();
  await world.pass(4_999);
  expect(world.events('handover.began')).toHaveLength(1);
  expect(world.readiness).toEqual([]);
  await world.pass(1);
  expect(world.readiness).toEqual([{ ready: false, reason: 'no response within 5000 ms' }]);
});

test('an answer that comes when the agent stops does not count', async () => {
  const world = await AgentWorld.serving();
  world.answersLate = true;
  await world.ask();
  world.signal('SIGTERM');
  world.answer();
  expect(world.readiness).toEqual([{ ready: false, reason: 'agent is stopping' }]);
});

test('each hand-over is told with the name of who comes, each change of who serves with its name, base id, admin port and process', async () => {
  const world = await tainted();
  await goesLive(world);
  expect(world.events('handover.began')).toEqual([
    { type: 'handover.began', name: 'epoch-1' },
    { type: 'handover.began', name: 'epoch-0b' },
  ]);
  expect(world.events('serving.began')).toEqual([
    { type: 'serving.began', name: 'epoch-0', epoch: 0, baseId: 7, adminPort: 15_000, pid: 1001 },
    { type: 'serving.began', name: 'epoch-0b', epoch: 0, baseId: 8, adminPort: 16_000, pid: 1003 },
  ]);
});

test('the end of a draining parent is nobody’s business', async () => {
  const world = await handedOver();
  await world.pass(60_000);
  await ends(world, world.process('epoch-0'));
  expect(world.events('serving.ended')).toEqual([]);
  expect(await world.ask()).toEqual(ready);
});

test('§6.2: the Envoy that serves drains on order, and the agent goes on; nobody else does', async () => {
  const world = new AgentWorld();
  await world.settle();
  world.orderDrain();
  expect(world.events('envoy.drain')).toEqual([]);
  await goesLive(world);
  world.orderDrain();
  expect(world.events('envoy.drain')).toHaveLength(1);
  expect(await world.ask()).toEqual(ready);
  // Who takes over has the admin port, and is not the one that was meant.
  await world.certificate('digest-1');
  world.orderDrain();
  expect(world.events('envoy.drain')).toHaveLength(1);
  await ends(world, world.newest(), { code: 1 });
  world.orderDrain();
  expect(world.events('envoy.drain')).toHaveLength(2);
  world.signal('SIGTERM');
  world.orderDrain();
  expect(world.events('envoy.drain')).toHaveLength(2);
});

test('§1.3 DISABLE_ENVOY: ready at once, with the first names where they are awaited, and not ready when it stops', async () => {
  const world = new AgentWorld({ runsEnvoy: false });
  await world.settle();
  expect(await world.ask()).toEqual(ready);
  expect(world.events('epoch.start')).toEqual([]);

  const awaiting = new AgentWorld({ runsEnvoy: false, dns: true, xdsSocket: './XDS' });
  await awaiting.settle();
  expect(await awaiting.ask()).toEqual({ ready: false, reason: 'control plane has not sent the DNS name table yet' });
  awaiting.tellDns({ type: 'name-table.received', names: 0, skipped: 0 });
  expect(await awaiting.ask()).toEqual(ready);
});

test.each(['SIGTERM', 'quit'] as const)('§1.3 DISABLE_ENVOY: %s ends it at once, with 0', async (how) => {
  const world = new AgentWorld({ runsEnvoy: false });
  await world.settle();
  if (how === 'quit') world.quit();
  else world.signal('SIGTERM');
  await world.settle();
  expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
});
