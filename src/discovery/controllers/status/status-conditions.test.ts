import { describe, expect, it } from 'vitest';
import { type DesiredCondition, isObservedLater, withConditions } from './status-conditions.ts';

const accepted: DesiredCondition = { type: 'Accepted', status: 'True', reason: 'Accepted', message: 'is in force' };
const moment = { generation: 3, time: '2026-11-27T12:00:00Z' };
const presentCondition = {
  ...{ type: 'Accepted', status: 'True', reason: 'Accepted', message: 'is in force' },
  ...{ lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 3 },
};
const foreign = { type: 'Audited', status: 'True', reason: 'ByHand', extra: { of: 'somebody' } };

describe('lastTransitionTime', () => {
  it.each([
    ['is now for a condition that is new', [], moment.time],
    ['is now when the status has changed', [{ ...presentCondition, status: 'False' }], moment.time],
    [
      'stays when the message alone is another',
      [{ ...presentCondition, message: 'was' }],
      presentCondition.lastTransitionTime,
    ],
    [
      'stays when the reason and generation are others',
      [{ ...presentCondition, reason: 'Old', observedGeneration: 1 }],
      presentCondition.lastTransitionTime,
    ],
    ['is now where what was there is no time', [{ ...presentCondition, lastTransitionTime: 'yesterday' }], moment.time],
  ])('%s', (_, present, time) => {
    expect(withConditions(present, [accepted], moment)).toEqual([{ ...presentCondition, lastTransitionTime: time }]);
  });
});

describe('among conditions of other writers', () => {
  it('a condition keeps its place, and other conditions are unchanged', () => {
    const present = [foreign, { ...presentCondition, message: 'was' }, 'what is no condition', { type: 7 }];
    expect(withConditions(present, [accepted], moment)).toEqual([
      foreign,
      presentCondition,
      'what is no condition',
      { type: 7 },
    ]);
  });

  it('a new condition is appended, and one that no longer applies is removed', () => {
    const programmed = { ...presentCondition, type: 'Programmed' };
    const after = withConditions([programmed, foreign], [accepted], moment, ['Programmed']);
    expect(after).toEqual([foreign, { ...presentCondition, lastTransitionTime: moment.time }]);
  });

  it('unchanged conditions return the same list', () => {
    const present = [foreign, presentCondition];
    expect(withConditions(present, [accepted], moment)).toBe(present);
  });

  it('a condition about a newer generation is kept', () => {
    for (const observedGeneration of [4, '4']) {
      const present = [{ ...presentCondition, status: 'False', observedGeneration }];
      expect(withConditions(present, [accepted], moment)).toBe(present);
    }
  });

  it('a generation in text form, as Istio resources allow, stays in text form if it is equal', () => {
    const present = [{ ...presentCondition, observedGeneration: '3' }];
    expect(withConditions(present, [accepted], moment)).toBe(present);
  });
});

describe('foreign content', () => {
  it.each(['a text', 7, null, { length: 3 }, undefined])(
    '%j is not a list of conditions and is replaced',
    (present) => {
      expect(withConditions(present, [accepted], moment)).toHaveLength(1);
    },
  );

  it('ten thousand own conditions of a type become one, and ten thousand of another type are kept', () => {
    const of = (type: string): object[] => Array.from({ length: 10_000 }, () => ({ ...presentCondition, type }));
    expect(withConditions(of('Accepted'), [accepted], moment)).toEqual([presentCondition]);
    expect(withConditions(of('Other'), [accepted], moment)).toHaveLength(10_001);
  });

  it('a generation that is not a number is ignored', () => {
    for (const observedGeneration of ['x', {}, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(isObservedLater({ observedGeneration }, 3)).toBe(false);
    }
    expect(isObservedLater('nothing', 3)).toBe(false);
    expect(isObservedLater({ observedGeneration: 9 }, undefined)).toBe(false);
  });
});

describe('limits of the API', () => {
  const one = (fields: Partial<DesiredCondition>): Record<string, unknown> =>
    withConditions([], [{ ...accepted, ...fields }], moment)[0] as Record<string, unknown>;

  it.each([
    ['No such backend!', 'Nosuchbackend'],
    ['9lives', 'lives'],
    ['', 'Unknown'],
    ['Ends,:', 'Ends'],
    ['x'.repeat(2_000), 'x'.repeat(1_024)],
  ])('the reason %j is %j', (reason, legal) => {
    expect(one({ reason }).reason).toBe(legal);
  });

  it('a message contains escapes instead of controls, bidirectional controls and lone surrogates', () => {
    expect(one({ message: 'no\r\n\u001b[31mService \u202etxt\u2028é' }).message).toBe(
      'no\\r\\n\\x1b[31mService \\u202etxt\\u2028é',
    );
    expect(one({ message: 'a\uD800' }).message).toBe('a\\ud800');
  });

  it('a message is cut between characters and between escapes', () => {
    expect(one({ message: `${'a'.repeat(32_766)}😀😀` }).message).toBe(`${'a'.repeat(32_766)}…`);
    expect(one({ message: `${'a'.repeat(32_766)}\u202e` }).message).toBe(`${'a'.repeat(32_766)}…`);
    expect(one({ message: 'b'.repeat(32_768) }).message).toHaveLength(32_768);
  });
});
