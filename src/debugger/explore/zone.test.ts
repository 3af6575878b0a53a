import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type DeadlineKind, Zone } from './zone.ts';

describe('a zone', () => {
  test('allows the earliest timer next, and any of several timers that are due simultaneously', () => {
    const zone = Zone.empty.arm('late', 300).arm('soon', 100).arm('as soon', 100).elapse();
    expect(zone.firableTimers()).toEqual(['soon', 'as soon']);
  });

  test('contains the remaining time of the other timers after a timer fires', () => {
    const zone = Zone.empty.arm('late', 300).arm('soon', 100).elapse().fire('soon').arm('between', 199).elapse();
    expect(zone.firableTimers()).toEqual(['between']);
    expect(zone.fire('between').arm('after', 2).elapse().firableTimers()).toEqual(['late']);
  });

  test('leaves the start of a deadline without an exact time undetermined', () => {
    const zone = Zone.empty.arm('first', 100).elapse().arm('second', 50).elapse();
    expect(zone.firableTimers()).toEqual(['first', 'second']);
  });

  test('allows no timer before an event that must happen earlier', () => {
    const zone = Zone.empty.arm('timer', 100).arm('an exit', 50, 'within').elapse();
    expect(zone.firableTimers()).toEqual([]);
    expect(zone.cancel('an exit').elapse().firableTimers()).toEqual(['timer']);
  });

  test('allows a timer before a deadline that may take longer', () => {
    const zone = Zone.empty.arm('timer', 100).arm('an exit', 150, 'within').elapse();
    expect(zone.firableTimers()).toEqual(['timer']);
    expect(zone.fire('timer').has('an exit')).toBe(true);
  });

  test('lets time pass a mark, and reports whether the mark has passed in every timing', () => {
    const zone = Zone.empty.arm('deadline', 100, 'mark').arm('timer', 150).elapse();
    expect(zone.isOverdue('deadline')).toBe(false);
    const laterZone = zone.fire('timer');
    expect(laterZone.isOverdue('deadline')).toBe(true);
    expect(laterZone.minElapsedMs('deadline')).toBe(50);
    expect(zone.minElapsedMs('deadline')).toBe(-100);
  });

  test('removes a cancelled deadline and ignores an unknown one', () => {
    const zone = Zone.empty.arm('a', 1).arm('b', 2).elapse();
    expect(zone.cancel('a').names('exact')).toEqual(['b']);
    expect(zone.cancel('c')).toBe(zone);
  });

  test('has one deadline per name', () => {
    expect(() => Zone.empty.arm('a', 1).arm('a', 2)).toThrow("deadline 'a' exists already");
  });

  test('has the same order key for the same order of deadlines, regardless of distances and arming order', () => {
    const nearZone = Zone.empty.arm('a', 100).arm('b', 200).elapse();
    const farZone = Zone.empty.arm('b', 900).arm('a', 100).elapse();
    expect(nearZone.orderKey()).toBe(farZone.orderKey());
    expect(nearZone.key()).not.toBe(farZone.key());
    expect(nearZone.orderKey()).not.toBe(Zone.empty.arm('a', 200).arm('b', 100).elapse().orderKey());
    expect(nearZone.orderKey()).not.toBe(Zone.empty.arm('a', 100).arm('b', 100).elapse().orderKey());
  });

  test('has different keys before and after a mark has passed', () => {
    const earlierZone = Zone.empty.arm('mark', 0, 'mark').arm('timer', 10);
    const laterZone = Zone.empty.arm('mark', 1, 'mark').arm('timer', 10);
    expect(earlierZone.orderKey()).not.toBe(laterZone.orderKey());
    expect(earlierZone.orderKey(true)).not.toBe(laterZone.orderKey(true));
  });

  test('has the same order key for any age of a past mark if pastIsPast is set', () => {
    const passed = Zone.empty.arm('mark', 0, 'mark').arm('timer', 0);
    const longAgo = Zone.empty.arm('mark', 0, 'mark').arm('other', 5).fire('other').arm('timer', 0);
    expect(longAgo.orderKey(true)).toBe(passed.orderKey(true));
    expect(longAgo.elapse().orderKey(true)).toBe(passed.elapse().orderKey(true));
    expect(longAgo.orderKey()).not.toBe(passed.orderKey());
  });
});

interface Step {
  readonly operation: 'arm' | 'cancel' | 'fire';
  readonly kind: DeadlineKind;
  readonly ms: number;
  /** The fraction of the allowed time that passes before this step. */
  readonly share: number;
  readonly timerIndex: number;
}

const step = fc.record<Step>({
  operation: fc.constantFrom('arm', 'arm', 'cancel', 'fire', 'fire'),
  kind: fc.constantFrom<DeadlineKind>('exact', 'exact', 'within', 'mark'),
  ms: fc.integer({ min: 0, max: 20 }),
  share: fc.constantFrom(0, 0.25, 0.5, 1),
  timerIndex: fc.nat(1000),
});

/** A concrete timing with its zone. */
class Timing {
  now = 0;
  zone = Zone.empty;
  readonly pendingDeadlines = new Map<string, { at: number; kind: DeadlineKind }>();
  #armedCount = 0;

  get soonest(): number {
    return Math.min(...[...this.pendingDeadlines.values()].filter(({ kind }) => kind !== 'mark').map(({ at }) => at));
  }

  apply({ operation, kind, ms, share, timerIndex }: Step): void {
    if (operation === 'fire') this.#fire(timerIndex);
    else {
      const remainingMs = this.soonest - this.now;
      this.now += share * (Number.isFinite(remainingMs) ? remainingMs : 10);
      if (operation === 'arm') this.#arm(ms, kind);
      else this.#cancel(timerIndex);
    }
    this.zone = this.zone.elapse();
  }

  #arm(ms: number, kind: DeadlineKind): void {
    const name = `deadline ${this.#armedCount++}`;
    this.pendingDeadlines.set(name, { at: this.now + ms, kind });
    this.zone = this.zone.arm(name, ms, kind);
  }

  #cancel(deadlineIndex: number): void {
    const name = [...this.pendingDeadlines.keys()][deadlineIndex % Math.max(1, this.pendingDeadlines.size)];
    if (name === undefined) return;
    this.pendingDeadlines.delete(name);
    this.zone = this.zone.cancel(name);
  }

  #fire(deadlineIndex: number): void {
    const first = [...this.pendingDeadlines].filter(([, { at, kind }]) => kind === 'exact' && at === this.soonest);
    const name = first[deadlineIndex % Math.max(1, first.length)]?.[0];
    if (name === undefined) return;
    expect(this.zone.firableTimers()).toContain(name);
    this.now = this.soonest;
    this.pendingDeadlines.delete(name);
    this.zone = this.zone.fire(name);
  }
}

test('a zone allows every event of a concrete timing, and its certain bounds hold in every timing', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30, size: 'max' }), (steps) => {
      const timing = new Timing();
      for (const one of steps) {
        timing.apply(one);
        const { zone, now, pendingDeadlines } = timing;
        for (const [name, { at, kind }] of pendingDeadlines) {
          expect(zone.has(name)).toBe(true);
          if (zone.isOverdue(name)) expect(at).toBeLessThanOrEqual(now);
          if (kind === 'mark') expect(zone.minElapsedMs(name)).toBeLessThanOrEqual(now - at);
          if (kind === 'exact' && at === timing.soonest) expect(zone.firableTimers()).toContain(name);
        }
      }
    }),
    { numRuns: 2_000 },
  );
});
