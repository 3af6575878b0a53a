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
  expect(await world.ask()).toEqual({ ready: false, reason: "Envoy's admin interface says: 503" });
  expect(world.events('envoy.ask')).toEqual([
    { type: 'envoy.ask', request: 1, at: 'admin' },
    { type: 'envoy.ask', request: 2, at: 'admin' },
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
  expect(world.events('readiness.answer')).toEqual([
    { type: 'readiness.answer', request: 0, ready: true, reason: '' },
    { type: 'readiness.answer', request: 1, ready: true, reason: '' },
    { type: 'readiness.answer', request: 2, ready: false, reason: 'Envoy ended' },
    { type: 'readiness.answer', request: 3, ready: false, reason: 'the agent is stopping' },
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
  expect(world.events('envoy.ask').map(({ at }) => at)).toEqual(['admin', 'port']);
});

test('an Envoy that lives without a listener that it refused is not ready, also while its child starts', async () => {
  const world = await AgentWorld.serving();
  world.refused = 'tls: no certificate';
  const notReady = { ready: false, reason: 'Envoy lacks listeners that it refused: tls: no certificate' };
  expect(await world.ask()).toEqual(notReady);
  await world.certificate('digest-1');
  expect(await world.ask()).toEqual(notReady);
  world.refused = '';
  await goesLive(world);
  expect(await world.ask()).toEqual(ready);
});

test('during a hand-over an Envoy whose port does not answer is not ready', async () => {
  const world = await AgentWorld.serving();
  await world.certificate('digest-1');
  world.portAnswers = false;
  expect(await world.ask()).toEqual({ ready: false, reason: "Envoy's port says: no answer" });
});

test('a child that took the admin port with it leaves an epoch that is asked at its port', async () => {
  const world = await AgentWorld.serving();
  await world.certificate('digest-1');
  world.adminGone = true;
  await ends(world, world.newest(), { code: 1 });
  expect(await world.ask()).toEqual(ready);
  world.portAnswers = false;
  expect(await world.ask()).toEqual({ ready: false, reason: "Envoy's port says: no answer" });
  world.portAnswers = true;
  await world.nextStart();
  expect(await world.ask()).toEqual(ready);
  await goesLive(world);
  world.adminGone = false;
  await world.ask();
  expect(world.events('envoy.ask').map(({ at }) => at)).toEqual(['admin or port', 'admin or port', 'port', 'admin']);
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
  expect(world.events('envoy.ask').map(({ request, at }) => [request, at])).toEqual([
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
  const silent = { ready: false, reason: 'no answer in 5000 ms' };
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
  expect(world.readiness).toEqual([{ ready: false, reason: 'no answer in 5000 ms' }]);
});

test('an answer that comes when the agent stops does not count', async () => {
  const world = await AgentWorld.serving();
  world.answersLate = true;
  await world.ask();
  world.signal('SIGTERM');
  world.answer();
  expect(world.readiness).toEqual([{ ready: false, reason: 'the agent is stopping' }]);
});

test('each hand-over is told with the name of who comes, each change of who serves with its name and base id', async () => {
  const world = await tainted();
  await goesLive(world);
  expect(world.events('handover.began')).toEqual([
    { type: 'handover.began', name: 'epoch-1' },
    { type: 'handover.began', name: 'epoch-0b' },
  ]);
  expect(world.events('serving.began')).toEqual([
    { type: 'serving.began', name: 'epoch-0', epoch: 0, baseId: 7 },
    { type: 'serving.began', name: 'epoch-0b', epoch: 0, baseId: 8 },
  ]);
});

test('the end of a draining parent is nobody’s business', async () => {
  const world = await handedOver();
  await world.pass(60_000);
  await ends(world, world.process('epoch-0'));
  expect(world.events('serving.ended')).toEqual([]);
  expect(await world.ask()).toEqual(ready);
});
