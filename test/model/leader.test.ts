/** Which of several replicas has a duty, and what it writes (machines/discovery/kubernetes/{elections,leader,elected-writer}.machine.ts). */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LeaderWorld, lease, Replica, rootMachine } from '../simulation/leader-world.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

eachWorldFollowsTheDiagrams(['elections', 'leader', 'elected-writer'], ['writing'], {
  instances: Replica.instances as never,
  machine: rootMachine,
});

let world: LeaderWorld;
beforeEach(() => {
  world = new LeaderWorld();
});
afterEach(() => {
  expect(world.violations).toEqual([]);
  world.end();
});

/** Two replicas, the first of which leads. */
async function startReplicas(): Promise<[Replica, Replica]> {
  const first = world.start('one');
  await world.passTime(100);
  const second = world.start('two');
  await world.passTime(10_000);
  expect(world.leaders).toEqual(['one']);
  return [first, second];
}

const specs = () => world.server.acceptedRequests.map(({ object }) => object.spec as Record<string, unknown>);

describe('a single leader', () => {
  it('creates a missing Lease with times of six decimal places, and renews it every 2 s', async () => {
    world.start('one');
    await world.passTime(8_100);
    expect(world.leaders).toEqual(['one']);
    expect(specs()[0]).toEqual({
      ...{ holderIdentity: 'one', leaseDurationSeconds: 15, leaseTransitions: 0 },
      acquireTime: expect.stringMatching(/T\d\d:\d\d:\d\d\.\d{6}Z$/),
      renewTime: expect.stringMatching(/T\d\d:\d\d:\d\d\.\d{6}Z$/),
    });
    expect(world.server.acceptedRequests.map(({ at }) => Math.round(at / 1_000))).toEqual([0, 2, 4, 6, 8]);
    expect(new Set(specs().map(({ acquireTime }) => acquireTime)).size).toBe(1);
    expect(new Set(specs().map(({ renewTime }) => renewTime)).size).toBe(5);
  });

  it('is elected from several candidates that start at the same time', async () => {
    for (const name of ['one', 'two', 'three']) world.start(name);
    await world.passTime(100);
    expect(world.leaders).toHaveLength(1);
    await world.passTime(60_000);
    expect(world.leaders).toHaveLength(1);
    expect(specs().at(-1)!.leaseTransitions).toBe(0);
  });

  it('is replaced by exactly one candidate when its Lease expires, if it was killed', async () => {
    const [first, second] = await startReplicas();
    const lastWord = world.server.acceptedRequests.at(-1)!.at;
    world.kill(first);
    await world.passTime(lastWord + 15_000 - world.clock.now());
    expect(world.leaders).toEqual([]);
    await world.passTime(4_500);
    expect(world.leaders).toEqual([second.name]);
    expect(specs().at(-1)).toMatchObject({ holderIdentity: 'two', leaseTransitions: 1 });
  });

  it('releases the Lease when it resigns, and the other candidate acquires the Lease at its next check', async () => {
    const [first, second] = await startReplicas();
    first.order('elections.resign');
    await world.passTime(100);
    expect(first.state).toBe('resigned');
    expect(world.server.holder).toBe('');
    await world.passTime(4_500);
    expect(world.leaders).toEqual([second.name]);
    first.order('elections.resign');
    await world.passTime(100);
    const resignations = first.records.filter(
      (record) => record.kind === 'event' && record.event.type === 'elections.resigned',
    );
    expect(resignations).toHaveLength(2);
  });

  it('releases the Lease if it must resign while claiming it', async () => {
    const first = world.start('one');
    await world.passTime(7);
    expect(first.state).toBe('claiming');
    first.order('elections.resign');
    await world.passTime(100);
    expect([first.state, world.server.holder]).toEqual(['resigned', '']);
  });

  it('stops immediately if another candidate has claimed its Lease', async () => {
    const [first] = await startReplicas();
    const { spec } = world.server.lease!;
    world.server.put(lease, { spec: { ...(spec as object), holderIdentity: 'stranger', renewTime: 'now' } });
    await world.passTime(2_100);
    expect(first.isLeader).toBe(false);
    expect(first.state).toMatch(/^standing by/);
    await world.passTime(20_000);
    expect(world.leaders).toHaveLength(1);
  });

  it('stops within 3 s if it must resign while the API server does not respond', async () => {
    const [first] = await startReplicas();
    world.server.fate = () => ({ lostMessage: 'request' });
    first.order('elections.resign');
    await world.passTime(2_999);
    expect(first.state).not.toBe('resigned');
    await world.passTime(2);
    expect(first.state).toBe('resigned');
  });
});

describe('a Lease renewal', () => {
  it('is followed by a read and another renewal if it is accepted without a response', async () => {
    const [first] = await startReplicas();
    let lostCount = 0;
    world.server.fate = ({ method }) => (method === 'PUT' && lostCount++ === 0 ? { lostMessage: 'answer' } : {});
    await world.passTime(30_000);
    expect(lostCount).toBeGreaterThan(1);
    expect(first.records.some((record) => record.kind === 'event' && record.event.type === 'leader.lost')).toBe(false);
  });

  it('ends the term if it fails for 10 s, and the leader becomes a candidate again', async () => {
    const [first] = await startReplicas();
    const sentAt = world.server.acceptedRequests.at(-1)!.at - 2;
    world.server.isUp = false;
    await world.passTime(sentAt + 9_999 - world.clock.now());
    expect(world.leaders).toEqual(['one']);
    await world.passTime(2);
    expect(world.leaders).toEqual([]);
    expect(first.state).toMatch(/^checking holder/);
    await world.passTime(60_000);
    world.server.isUp = true;
    await world.passTime(5_000);
    expect(world.leaders).toHaveLength(1);
  });

  it('extends the term from the time of sending if its response is late', async () => {
    const [first] = await startReplicas();
    await world.passTime(1_000);
    world.server.fate = () => ({ respondsAfterMs: 3_000 });
    await world.passTime(4_000);
    world.server.isUp = false;
    const renewedAt = world.server.acceptedRequests.at(-1)!.at - 2;
    await world.passTime(renewedAt + 9_999 - world.clock.now());
    expect(first.isLeader).toBe(true);
    await world.passTime(2);
    expect(first.isLeader).toBe(false);
  });
});

describe('a suspended process', () => {
  it.each(['timer', 'answer'] as const)(
    'writes nothing if it resumes after its term and handles the %s first, and becomes a candidate again',
    async (first) => {
      const [one, two] = await startReplicas();
      const renewing = (): boolean => one.state.endsWith('renewing');
      while (!renewing()) await world.passTime(1);
      one.process.stop();
      await world.passTime(30_000);
      expect(world.leaders).toEqual([two.name]);
      one.process.wake(first);
      expect(one.isLeader).toBe(false);
      await world.passTime(10_000);
      expect(world.leaders).toEqual([two.name]);
      expect(one.state).toMatch(/^standing by/);
    },
  );

  it('does not claim because of a timer that started before its last read if it is a candidate', async () => {
    const [one, two] = await startReplicas();
    while (!two.state.endsWith('reading')) await world.passTime(1);
    two.process.stop();
    await world.passTime(16_000);
    two.process.wake('timer');
    await world.passTime(10_000);
    expect(world.leaders).toEqual([one.name]);
  });
});

describe('clocks of two replicas', () => {
  it.each([
    [1, 1.45],
    [0.7, 1],
    [1.45, 1],
    [1, 0.7],
  ])('do not cause two leaders if they run %d and %d times as fast', async (leaderRate, followerRate) => {
    world.start('one', { rate: leaderRate });
    await world.passTime(100);
    world.start('two', { rate: followerRate });
    await world.passTime(20_000);
    world.server.fate = ({ method, body }) => {
      const holder = (body as { spec?: { holderIdentity?: string } } | undefined)?.spec?.holderIdentity;
      return method === 'PUT' && holder === 'one' ? { lostMessage: 'request' } : {};
    };
    await world.passTime(40_000);
    expect(world.leaders).toEqual(['two']);
  });

  it('cause two leaders if they differ more than tolerated, which this simulation detects', async () => {
    world.start('one', { rate: 0.5 });
    await world.passTime(100);
    world.start('two', { rate: 1.4 });
    await world.passTime(20_000);
    world.server.fate = ({ method, body }) => {
      const holder = (body as { spec?: { holderIdentity?: string } } | undefined)?.spec?.holderIdentity;
      return method === 'PUT' && holder === 'one' ? { lostMessage: 'request' } : {};
    };
    await world.passTime(40_000);
    expect(world.violations.splice(0)).not.toEqual([]);
  });
});

describe('the writer during a term', () => {
  it('writes all known objects once, then due ones', async () => {
    const one = world.start('one');
    await world.passTime(100);
    expect(one.duty.runs).toMatchObject([{ includesAll: true }]);
    one.duty.becomeDue();
    one.duty.becomeDue();
    await world.passTime(100);
    expect(one.duty.runs.slice(1)).toMatchObject([{ includesAll: false }]);
    await world.passTime(60_000);
    expect(one.duty.runs).toHaveLength(2);
  });

  it('writes all known objects again in the next term', async () => {
    const one = world.start('one');
    await world.passTime(100);
    world.server.isUp = false;
    await world.passTime(20_000);
    one.duty.becomeDue();
    await world.passTime(1_000);
    expect(one.duty.runs).toHaveLength(1);
    world.server.isUp = true;
    await world.passTime(5_000);
    expect(one.duty.runs.map(({ includesAll }) => includesAll)).toEqual([true, true]);
  });

  it('retries failed writes with increasing delays, without delaying other writes', async () => {
    const one = world.start('one');
    one.duty.nextFailure = 2;
    await world.passTime(8_000);
    const began = one.duty.runs[0]!.at;
    expect(one.duty.runs.map(({ at, retry }) => [at - began, retry])).toEqual([
      [0, true],
      [1_000, true],
      [3_000, true],
      [7_000, true],
    ]);
    one.duty.nextFailure = 0;
    one.duty.becomeDue();
    await world.passTime(100);
    expect(one.duty.runs.at(-1)).toMatchObject({ retry: false, includesAll: false });
    await world.passTime(8_000);
    expect(one.duty.runs.at(-1)).toMatchObject({ retry: true, includesAll: false });
    expect(one.duty.runs).toHaveLength(6);
  });

  it('retries all due writes after an internal error', async () => {
    const one = world.start('one');
    one.duty.nextFailure = new Error('bug');
    await world.passTime(500);
    one.duty.nextFailure = 0;
    await world.passTime(1_000);
    expect(one.duty.runs.map(({ includesAll }) => includesAll)).toEqual([true, true]);
  });
});
