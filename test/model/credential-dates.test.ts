/** Dates in Secrets, as the statechart compares them with the clock (machines/discovery/secrets/credential-dates.machine.ts). */
import { describe, expect, it } from 'vitest';
import type { CredentialDates } from '../../machines/discovery/secrets/credential-dates.machine.ts';
import { DiscoveryWorld } from '../simulation/discovery-world.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

const secondMs = 1_000;
const minuteMs = 60 * secondMs;
const secret = 'Secret/shop/web';

eachWorldFollowsTheDiagrams(['credential-dates'], ['comparing']);

const createWorld = async (dates: (at: number) => CredentialDates | Error): Promise<DiscoveryWorld> => {
  const world = new DiscoveryWorld({}, { readDates: dates });
  await world.settle();
  expect(world.state()).toBe('active.operating.serving');
  return world;
};

const requestedPushes = (world: DiscoveryWorld): unknown[] =>
  world.events('push.request').filter(({ configs }) => (configs as string[]).includes(secret));

/** Intervals between comparisons. */
function pausesOf({ datesComparedAt: times }: DiscoveryWorld): number[] {
  return times.slice(1).map((time, index) => time - times[index]!);
}

describe('dates in Secrets', () => {
  it('are checked once a minute if none is near', async () => {
    const world = await createWorld(() => ({ due: [], nextInMs: 24 * 60 * minuteMs }));
    await world.passTime(5 * minuteMs);
    expect(new Set(pausesOf(world))).toEqual(new Set([minuteMs]));
    expect(requestedPushes(world)).toEqual([]);
  });

  it('cause a push of their Secret when they are reached, with a precision of 1 s', async () => {
    const dueAt = 95 * secondMs;
    let start: number | undefined;
    let isPushed = false;
    const world = await createWorld((at) => {
      start ??= at - minuteMs;
      const remainingMs = start + dueAt - at;
      if (remainingMs > 0) return { due: [], nextInMs: remainingMs };
      const dueSecrets = isPushed ? [] : [secret];
      isPushed = true;
      return { due: dueSecrets, nextInMs: null };
    });
    await world.passTime(dueAt - secondMs);
    expect(requestedPushes(world)).toEqual([]);
    await world.passTime(2 * secondMs);
    expect(requestedPushes(world)).toMatchObject([{ configs: [secret], forced: false }]);
    await world.passTime(3 * minuteMs);
    expect(requestedPushes(world)).toHaveLength(1);
    expect(world.events('clients.push')).toHaveLength(1);
  });

  it('are checked again after at least 1 s, and 1 min after a failure', async () => {
    const nearWorld = await createWorld(() => ({ due: [], nextInMs: 1 }));
    await nearWorld.passTime(minuteMs + 10 * secondMs);
    expect(pausesOf(nearWorld).every((pause) => pause === secondMs)).toBe(true);
    expect(pausesOf(nearWorld).length).toBeGreaterThan(5);
    const failing = await createWorld(() => new Error('no'));
    await failing.passTime(3 * minuteMs);
    expect(new Set(pausesOf(failing))).toEqual(new Set([minuteMs]));
    expect(failing.state()).toBe('active.operating.serving');
  });
});
