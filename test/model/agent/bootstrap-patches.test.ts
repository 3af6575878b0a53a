/** The control plane's patches of the bootstrap are known before an Envoy starts. */
import { expect, test } from 'vitest';
import { AgentWorld } from '../../simulation/agent-world.ts';
import { checkEveryWorld, epochsStarted } from './scenes.ts';

checkEveryWorld();

const patchedSettings = { patchedBootstrap: true };
const unreachableResult = {
  is: 'unreachable',
  reason: 'ECONNREFUSED',
  isRefusal: false,
  retryAfterMs: 0,
  chance: 1,
} as const;

test('the agent does not request bootstrap patches by default', async () => {
  const world = await AgentWorld.startServing();
  expect(world.patchesCredentials).toEqual([]);
});

test.each(['patched', 'unpatched'] as const)(
  'Envoy is started after the control plane reports that the bootstrap is %s',
  async (is) => {
    const world = new AgentWorld(patchedSettings);
    world.patchesResult = { is };
    await world.settle();
    expect(world.patchesCredentials).toEqual(['token']);
    expect(epochsStarted(world)).toEqual([0]);
  },
);

test('an unreachable control plane is queried about every 1.5 s, and Envoy waits for its response', async () => {
  const world = new AgentWorld(patchedSettings);
  world.patchesResult = unreachableResult;
  await world.passTime(60_000);
  expect(world.patchesCredentials.length).toBeGreaterThan(38);
  expect(world.patchesCredentials.length).toBeLessThan(46);
  expect(epochsStarted(world)).toEqual([]);
  world.patchesResult = { is: 'patched' };
  await world.passTime(1_500);
  expect(epochsStarted(world)).toEqual([0]);
});

test('a control plane that rejects the agent is retried more slowly, using the certificate if it rejected the token', async () => {
  const world = new AgentWorld(patchedSettings);
  world.patchesResult = { ...unreachableResult, isRefusal: true };
  await world.passTime(60_000);
  expect(world.patchesCredentials.slice(0, 3)).toEqual(['token', 'certificate', 'token']);
  expect(world.patchesCredentials.length).toBeLessThan(20);
});

test('a query that the control plane does not accept is retried after 20 s, without limit', async () => {
  const world = new AgentWorld(patchedSettings);
  world.patchesResult = undefined;
  world.acceptsPatchesRequest = false;
  await world.passTime(60_000);
  expect(world.patchesCredentials.length).toBe(3);
  expect(epochsStarted(world)).toEqual([]);
  world.patchesResult = { is: 'unpatched' };
  await world.passTime(21_500);
  expect(world.patchesCredentials).toHaveLength(4);
  expect(epochsStarted(world)).toEqual([0]);
});

test('a control plane that accepts the query but never responds delays Envoy by 10 s, without patches', async () => {
  const world = new AgentWorld(patchedSettings);
  world.patchesResult = undefined;
  await world.passTime(9_900);
  expect([epochsStarted(world), world.cancelledAfterMs]).toEqual([[], []]);
  await world.passTime(200);
  expect([epochsStarted(world), world.cancelledAfterMs]).toEqual([[0], [10_000]]);
  expect(world.patchesCredentials).toHaveLength(1);
});

test('the agent exits with a reason if the patches are invalid', async () => {
  const world = new AgentWorld(patchedSettings);
  world.patchesResult = { is: 'unusable', reason: 'it does not fit' };
  await world.settle();
  expect(world.output()).toEqual({ exitCode: 1, trouble: ['it does not fit'] });
  expect(epochsStarted(world)).toEqual([]);
  expect(world.releasedBaseIds).toEqual([7, 8]);
});

test('the agent exits on a signal while it waits for patches', async () => {
  const world = new AgentWorld(patchedSettings);
  world.patchesResult = unreachableResult;
  await world.passTime(5_000);
  world.signal('SIGTERM');
  await world.settle();
  expect(world.output()).toEqual({ exitCode: 0, trouble: [] });
  expect(world.releasedBaseIds).toEqual([7, 8]);
});
