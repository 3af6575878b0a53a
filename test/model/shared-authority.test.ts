/**
 * The authority that replicas share (machines/discovery/ca/shared-authority.machine.ts) and its time-based root rotation: several replicas that read
 * late, with workloads that renew late.
 */
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { type Actor, fromCallback, fromPromise, sendTo, setup } from 'xstate';
import { rootsIn } from '../../machines/discovery/ca/authority.setup.ts';
import { type CreationResult, sharedAuthorityMachine } from '../../machines/discovery/ca/shared-authority.machine.ts';
import type { SharedAuthorityReport, SharedStage } from '../../machines/discovery/ca/shared-authority-protocol.ts';
import {
  minStageMs,
  nextStep,
  orderRejection,
  type RotationFacts,
  type SharedJournal,
  sharedOrders,
  startRotation,
} from '../../machines/discovery/ca/shared-rotation.ts';
import { startRoot } from '../../src/runtime/actors/actor-system.ts';
import { createRecorder } from '../../src/runtime/trace/recorder.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { sized } from '../harness/size-of-run.ts';
import { VirtualClock } from '../simulation/virtual-clock.ts';
import { eachWorldFollowsTheDiagrams } from './follows-diagrams.ts';

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

const steadyStage = (signer: string, overrides: Partial<SharedStage> = {}): SharedStage => ({
  ...{ stage: 'steady', signer, other: null, tainted: null, previousSigners: [] },
  ...overrides,
});

/** The part of the control plane's own chart that the authority needs. */
const discovery = setup({ actors: { sharedAuthority: sharedAuthorityMachine } }).createMachine({
  id: 'discovery',
  invoke: { id: 'shared-authority', src: 'sharedAuthority', input: { checkMs: hourMs } },
  entry: sendTo('shared-authority', { type: 'authority.load' }),
});

/** The chart of one replica; a test sets the content of the Secret. */
class Replica {
  static readonly instances: Replica[] = [];
  readonly records: TraceRecord[] = [];
  readonly clock = new VirtualClock();
  readonly actor: Actor<typeof discovery>;
  failure: unknown;
  readonly appliedReadings: number[] = [];
  readonly pendingCreations: { withNewRoot: boolean; succeed: () => void; fail: (reason: string) => void }[] = [];
  checkCount = 0;
  #lastReading = 0;
  #report: (report: SharedAuthorityReport) => void = () => {};

  constructor() {
    Replica.instances.push(this);
    const recorder = createRecorder({ program: 'pilot-discovery', now: this.clock.now });
    recorder.observe((record) => this.records.push(record));
    const machine = sharedAuthorityMachine.provide({
      actors: {
        followSecret: fromCallback<{ type: never }, undefined>(({ sendBack }) => {
          this.#report = sendBack;
        }),
        createSecret: fromPromise<CreationResult, { withNewRoot: boolean }>(
          ({ input: { withNewRoot } }) =>
            new Promise((resolve) => {
              this.pendingCreations.push({
                withNewRoot,
                succeed: () => resolve({ outcome: 'there' }),
                fail: (reason) => resolve({ outcome: 'failed', reason }),
              });
            }),
        ),
      },
      actions: {
        applyAuthority: (_, { reading }) => void this.appliedReadings.push(reading),
        checkRotation: () => void this.checkCount++,
      },
    });
    this.actor = startRoot(discovery.provide({ actors: { sharedAuthority: machine } }), {
      ...{ id: 'discovery', input: undefined, clock: this.clock as never, recorder },
      onError: (error) => {
        this.failure = error;
      },
    });
  }

  read(stage: SharedStage, isCompatible = false): void {
    this.#report({ type: 'shared-authority.read', reading: ++this.#lastReading, isCompatible: isCompatible, ...stage });
  }

  reportAbsent(): void {
    this.#report({ type: 'shared-authority.absent' });
  }

  reportUnusable(reason = 'no key'): void {
    this.#report({ type: 'shared-authority.unusable', reason });
  }

  async settle(): Promise<void> {
    for (let tick = 0; tick < 5; tick++) await Promise.resolve();
  }
}

eachWorldFollowsTheDiagrams(['shared-authority'], [], { instances: Replica.instances, machine: discovery });

let replica: Replica;
afterEach(() => void replica?.actor.stop());

describe('a replica with a shared authority', () => {
  it('creates a missing Secret, and signs with the Secret that it reads, whichever replica created it', async () => {
    replica = new Replica();
    expect(replica.pendingCreations).toEqual([]);
    replica.reportAbsent();
    expect(replica.pendingCreations.map(({ withNewRoot }) => withNewRoot)).toEqual([true]);
    replica.pendingCreations[0]!.succeed();
    await replica.settle();
    expect(replica.appliedReadings).toEqual([]);
    replica.read(steadyStage('a'));
    expect(replica.appliedReadings).toEqual([1]);
    expect(replica.checkCount).toBe(1);
  });

  it('retries with increasing delays while the API server rejects the Secret, and tries again if the created Secret does not appear', async () => {
    replica = new Replica();
    replica.reportAbsent();
    for (const waits of [1_000, 2_000, 4_000]) {
      replica.pendingCreations.at(-1)!.fail('forbidden');
      await replica.settle();
      const creationsBefore = replica.pendingCreations.length;
      replica.clock.advance(waits - 1);
      expect(replica.pendingCreations.length).toBe(creationsBefore);
      replica.clock.advance(1);
      expect(replica.pendingCreations.length).toBe(creationsBefore + 1);
    }
    replica.pendingCreations.at(-1)!.succeed();
    await replica.settle();
    replica.clock.advance(10_000);
    expect(replica.pendingCreations.length).toBe(5);
    replica.read(steadyStage('a'));
    expect(replica.appliedReadings).toEqual([1]);
  });

  it('does not replace an invalid Secret, and waits until it is corrected', async () => {
    replica = new Replica();
    replica.reportUnusable();
    replica.clock.advance(hourMs);
    expect(replica.pendingCreations).toEqual([]);
    replica.read(steadyStage('a'));
    expect(replica.appliedReadings).toEqual([1]);
    replica.reportUnusable();
    replica.read(steadyStage('a'), true);
    expect(replica.appliedReadings).toEqual([1, 2]);
  });

  it('restores a deleted Secret without creating a new root', async () => {
    replica = new Replica();
    replica.read(steadyStage('a'));
    replica.reportAbsent();
    expect(replica.pendingCreations.map(({ withNewRoot }) => withNewRoot)).toEqual([false]);
    replica.pendingCreations[0]!.fail('away');
    await replica.settle();
    replica.clock.advance(1_000);
    expect(replica.pendingCreations.map(({ withNewRoot }) => withNewRoot)).toEqual([false, false]);
    replica.read(steadyStage('a'), true);
    expect(replica.appliedReadings).toEqual([1, 2]);
  });

  it.each<[string, SharedStage, SharedStage, boolean, boolean]>([
    ['accepts the next stage', steadyStage('a'), steadyStage('a', { stage: 'trusting', other: 'b' }), true, true],
    [
      'accepts a stage after one that this replica has not read',
      steadyStage('a'),
      steadyStage('b', { stage: 'signing', other: 'a', previousSigners: ['a'] }),
      false,
      true,
    ],
    [
      'accepts the end of a rotation that this replica has not read',
      steadyStage('a'),
      steadyStage('b', { previousSigners: ['a'] }),
      false,
      true,
    ],
    ['rejects another root', steadyStage('a'), steadyStage('b'), false, false],
    [
      'rejects an older Secret that is restored during a rotation',
      steadyStage('b', { stage: 'signing', other: 'a', previousSigners: ['a'] }),
      steadyStage('a'),
      false,
      false,
    ],
    ['accepts another intermediate of a trusted root', steadyStage('a'), steadyStage('c'), true, true],
  ])('%s in the Secret', (_, knownStage, read, isCompatible, isFollowed) => {
    replica = new Replica();
    replica.read(knownStage);
    replica.read(read, isCompatible);
    expect(replica.appliedReadings).toEqual(isFollowed ? [1, 2] : [1]);
  });

  it('checks whether a stage is due every hour, and 1 min after each read', async () => {
    replica = new Replica();
    replica.read(steadyStage('a'));
    replica.clock.advance(minStageMs);
    expect(replica.checkCount).toBe(2);
    replica.clock.advance(2 * hourMs);
    expect(replica.checkCount).toBe(4);
  });
});

const journalOf = (overrides: Partial<SharedJournal> = {}): SharedJournal => ({
  ...{ ...steadyStage('a'), since: 0, maxLeafMs: dayMs },
  ...overrides,
});
const factsAt = (now: number, overrides: Partial<RotationFacts> = {}): RotationFacts => ({
  ...{ now, order: null, isRootDue: false, endsAt: 3_650 * dayMs, otherEndsAt: null, maxLeafMs: dayMs },
  ...overrides,
});

describe('the rotation stages', () => {
  const trusting = journalOf({ stage: 'trusting', other: 'b' });
  const signing = journalOf({ stage: 'signing', signer: 'b', other: 'a', previousSigners: ['a'] });
  const dropping = { ...signing, stage: 'dropping' as const };

  it.each<[string, SharedJournal, RotationFacts, Partial<SharedJournal> | undefined]>([
    ['a root that is not due is kept', journalOf(), factsAt(dayMs), undefined],
    ['a due root starts a rotation', journalOf(), factsAt(5, { isRootDue: true }), { stage: 'trusting', since: 5 }],
    ['an order starts a rotation', journalOf(), factsAt(5, { order: 'rotate' }), { stage: 'trusting', tainted: null }],
    [
      'an order starts a rotation of a tainted root',
      journalOf(),
      factsAt(5, { order: 'taint' }),
      { stage: 'trusting', tainted: 'a' },
    ],
    ['the next root does not sign before all workloads can have renewed', trusting, factsAt(2 * dayMs - 1), undefined],
    [
      'the next root signs after all workloads have renewed',
      trusting,
      factsAt(2 * dayMs),
      { stage: 'signing', signer: 'b', other: 'a', previousSigners: ['a'] },
    ],
    [
      'an order continues a rotation before its time',
      trusting,
      factsAt(minStageMs, { order: 'proceed' }),
      { stage: 'signing' },
    ],
    [
      'an order does not continue a rotation before replicas have read the stage',
      trusting,
      factsAt(minStageMs - 1, { order: 'proceed' }),
      undefined,
    ],
    [
      'an order reverts a rotation before the next root signs',
      trusting,
      factsAt(5, { order: 'revert' }),
      { stage: 'steady', signer: 'a', other: null },
    ],
    [
      'a root that expires soon has half of its time for each stage',
      trusting,
      factsAt(12 * hourMs, { endsAt: dayMs }),
      { stage: 'signing' },
    ],
    [
      'the previous root is dropped when all its certificates have expired',
      signing,
      factsAt(2 * dayMs),
      { stage: 'dropping' },
    ],
    [
      'the previous root is not dropped before its certificates have expired',
      signing,
      factsAt(2 * dayMs - 1),
      undefined,
    ],
    [
      'after a revert the previous root signs again',
      signing,
      factsAt(5, { order: 'revert' }),
      { stage: 'signing', signer: 'a', other: 'b' },
    ],
    ['a tainted root does not sign again', { ...signing, tainted: 'a' }, factsAt(5, { order: 'revert' }), undefined],
    [
      'a taint is recorded, and the stage continues',
      signing,
      factsAt(5, { order: 'taint' }),
      { tainted: 'a', since: 0 },
    ],
    [
      'a taint in stage dropping concerns the signing root',
      dropping,
      factsAt(2 * dayMs, { order: 'taint' }),
      { stage: 'dropping', tainted: 'b', since: 0 },
    ],
    [
      'a taint of the signing root remains when a rotation ends',
      { ...dropping, tainted: 'b' },
      factsAt(2 * dayMs),
      { stage: 'steady', signer: 'b', other: null, tainted: 'b' },
    ],
    [
      'a tainted root starts the next rotation',
      { ...journalOf(), tainted: 'a' },
      factsAt(5),
      { stage: 'trusting', signer: 'a', tainted: 'a' },
    ],
    ['a rotation ends in stage steady', dropping, factsAt(2 * dayMs), { stage: 'steady', signer: 'b', other: null }],
    [
      'a dropped root is trusted again after a revert',
      dropping,
      factsAt(5, { order: 'revert' }),
      { stage: 'trusting' },
    ],
    [
      'a replica with a longer certificate lifetime records it first',
      journalOf(),
      factsAt(5, { maxLeafMs: 9 * dayMs }),
      { maxLeafMs: 9 * dayMs, since: 0, stage: 'steady' },
    ],
    [
      'a clock that was set back delays the next stage',
      { ...trusting, since: 9 * dayMs },
      factsAt(5 * dayMs),
      undefined,
    ],
  ])('%s', (_, journal, facts, expected) => {
    const step = nextStep(journal, facts);
    if (expected === undefined) expect(step).toBeUndefined();
    else expect(step!.journal).toMatchObject(expected);
  });

  it('an unknown root in the Secret becomes the next root of a rotation', () => {
    expect(startRotation('x', journalOf(), 7)).toMatchObject({ stage: 'trusting', signer: 'a', other: 'x', since: 7 });
    // No workload has a certificate of the root that `x` replaces.
    for (const stageAtRestart of [trusting, dropping]) {
      expect(startRotation('x', stageAtRestart, 7)).toMatchObject({
        stage: 'trusting',
        signer: stageAtRestart.signer,
        other: 'x',
      });
    }
  });

  it('a tainted root stays tainted when an operator puts its successor into the Secret', () => {
    expect(startRotation('x', { ...trusting, tainted: 'a' }, 7)).toMatchObject({ other: 'x', tainted: 'a' });
    expect(startRotation('x', { ...dropping, tainted: 'a' }, 7)).toMatchObject({ signer: 'b', tainted: null });
  });

  const stages = [journalOf(), trusting, signing, dropping];
  const all = stages.flatMap((journal) => [null, 'a', 'b'].map((tainted) => ({ ...journal, tainted })));
  it.each(sharedOrders)('the order %s has an effect in each stage, or is rejected with a reason', (order) => {
    for (const journal of all.filter(({ signer, other, tainted }) => [null, signer, other].includes(tainted))) {
      const rejection = orderRejection(order, journal);
      const step = nextStep(journal, factsAt(2 * 60_000, { order }));
      if (rejection === undefined) expect(step?.journal, JSON.stringify(journal)).not.toEqual(journal);
      if (rejection === undefined) expect(step, JSON.stringify(journal)).toBeDefined();
    }
  });

  it.each([
    ['rotate', trusting, 'in progress'],
    ['revert', journalOf(), 'no step'],
    ['revert', { ...signing, tainted: 'a' }, 'must not sign again'],
    ['taint', { ...dropping, tainted: 'a' }, 'repeat the order in stage steady'],
    ['proceed', journalOf(), 'no stage'],
  ] as const)('the order %s is rejected in a stage that cannot execute it', (order, journal, reason) => {
    expect(orderRejection(order, journal)).toContain(reason);
    expect(orderRejection('taint', { ...journal, tainted: null })).toBeUndefined();
  });

  it('the active roots are restored while workloads have certificates of both, because a third root would disconnect them', () => {
    expect(startRotation('x', signing, 7)).toBe(signing);
  });
});

interface Followed {
  journal: SharedJournal;
}

interface Workload {
  readonly replica: number;
  trustedRoots: readonly string[];
  leaf: { signer: string; endsAt: number };
}

/** A deliberate error of the property. */
type RotationMutant = 'signs at once' | 'drops at once' | undefined;

/**
 * Replicas read writes up to half a day late; workloads receive their replica's roots when they renew, at half of a certificate's lifetime, and keep
 * them until then. @returns the first violation
 */
function run(
  delaysInHours: readonly number[],
  ordersAt: readonly number[],
  mutant?: RotationMutant,
): string | undefined {
  let writtenJournal = journalOf();
  const history = [{ at: 0, journal: writtenJournal }];
  const replicas: Followed[] = delaysInHours.map(() => ({ journal: writtenJournal }));
  const workloads = [0, 1, 2, 3].map(
    (i): Workload => ({ replica: i % replicas.length, trustedRoots: ['a'], leaf: { signer: 'a', endsAt: dayMs } }),
  );
  let roots = 0;
  for (let hour = 0; hour < 15 * 24; hour++) {
    const now = hour * hourMs;
    const order = ordersAt.includes(hour) ? ('rotate' as const) : null;
    const isEarly =
      (mutant === 'signs at once' && writtenJournal.stage === 'trusting') ||
      (mutant === 'drops at once' && writtenJournal.stage === 'signing');
    const step = nextStep(
      isEarly ? { ...writtenJournal, since: now - 9 * dayMs } : writtenJournal,
      factsAt(now, { order }),
    );
    if (step !== undefined) {
      writtenJournal = step.createsRoot ? { ...step.journal, other: `root-${++roots}` } : step.journal;
      history.push({ at: now, journal: writtenJournal });
    }
    replicas.forEach((one, i) => {
      one.journal = history.findLast(({ at }) => at + delaysInHours[i]! * hourMs <= now)?.journal ?? one.journal;
    });
    workloads.forEach((workload, i) => {
      if (workload.leaf.endsAt - now > dayMs / 2 - i * hourMs) return;
      const { journal } = replicas[workload.replica]!;
      workload.trustedRoots = rootsIn(journal.stage, journal);
      workload.leaf = { signer: journal.signer, endsAt: now + dayMs };
    });
    for (const one of workloads) {
      const untrustingWorkload = workloads.find(({ trustedRoots }) => !trustedRoots.includes(one.leaf.signer));
      if (untrustingWorkload !== undefined)
        return `hour ${hour}: ${untrustingWorkload.trustedRoots} does not trust ${one.leaf.signer}`;
    }
  }
  return roots > 0 && writtenJournal.stage === 'steady' ? undefined : `it did not end: ${writtenJournal.stage}`;
}

describe('replicas that read late with workloads that renew late', () => {
  const delays = fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 1, maxLength: 3 });
  const orders = fc.integer({ min: 1, max: 60 }).map((first) => [first]);

  it("never cause one workload to reject another's certificate", () => {
    const numRuns = sized({ quick: 30, short: 100, full: 3_000 });
    fc.assert(
      fc.property(delays, orders, (drawnDelays, drawnOrders) => {
        expect(run(drawnDelays, drawnOrders)).toBeUndefined();
      }),
      { numRuns },
    );
  });

  it.each(['signs at once', 'drops at once'] as const)('cause a rejected certificate if the authority %s', (mutant) => {
    expect(run([0, 12], [5], mutant)).toMatch(/does not trust/);
  });
});
