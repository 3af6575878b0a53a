import { describe, expect, it } from 'vitest';
import { type DesiredCondition, isObservedLater, withConditions } from './status-conditions.ts';

const acceptedCondition: DesiredCondition = {
  type: 'Accepted',
  status: 'True',
  reason: 'Accepted',
  message: 'is in force',
};
const observation = { generation: 3, time: '2026-11-27T12:00:00Z' };
const presentCondition = {
  ...{ type: 'Accepted', status: 'True', reason: 'Accepted', message: 'is in force' },
  ...{ lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 3 },
};
const foreignCondition = { type: 'Audited', status: 'True', reason: 'ByHand', extra: { of: 'somebody' } };

describe('lastTransitionTime', () => {
  it.each([
    ['is the current time for a new condition', [], observation.time],
    ['is the current time for a changed status', [{ ...presentCondition, status: 'False' }], observation.time],
    [
      'is kept if only the message changed',
      [{ ...presentCondition, message: 'was' }],
      presentCondition.lastTransitionTime,
    ],
    [
      'is kept if the reason and generation changed',
      [{ ...presentCondition, reason: 'Old', observedGeneration: 1 }],
      presentCondition.lastTransitionTime,
    ],
    [
      'is the current time if the present value is not a time',
      [{ ...presentCondition, lastTransitionTime: 'yesterday' }],
      observation.time,
    ],
  ])('%s', (_, present, time) => {
    expect(withConditions(present, [acceptedCondition], observation)).toEqual([
      { ...presentCondition, lastTransitionTime: time },
    ]);
  });
});

describe('withConditions', () => {
  it('updates a condition in place and changes no other condition', () => {
    const present = [foreignCondition, { ...presentCondition, message: 'was' }, 'what is no condition', { type: 7 }];
    expect(withConditions(present, [acceptedCondition], observation)).toEqual([
      foreignCondition,
      presentCondition,
      'what is no condition',
      { type: 7 },
    ]);
  });

  it('appends a new condition and removes an obsolete one', () => {
    const programmed = { ...presentCondition, type: 'Programmed' };
    const conditions = withConditions([programmed, foreignCondition], [acceptedCondition], observation, ['Programmed']);
    expect(conditions).toEqual([foreignCondition, { ...presentCondition, lastTransitionTime: observation.time }]);
  });

  it('returns the same list if no condition changed', () => {
    const present = [foreignCondition, presentCondition];
    expect(withConditions(present, [acceptedCondition], observation)).toBe(present);
  });

  it('keeps a condition about a newer generation', () => {
    for (const observedGeneration of [4, '4']) {
      const present = [{ ...presentCondition, status: 'False', observedGeneration }];
      expect(withConditions(present, [acceptedCondition], observation)).toBe(present);
    }
  });

  it('keeps an equal generation that is a string, as Istio resources allow', () => {
    const present = [{ ...presentCondition, observedGeneration: '3' }];
    expect(withConditions(present, [acceptedCondition], observation)).toBe(present);
  });
});

describe('withConditions with malformed input', () => {
  it.each(['a text', 7, null, { length: 3 }, undefined])(
    'replaces %j because it is not a list of conditions',
    (present) => {
      expect(withConditions(present, [acceptedCondition], observation)).toHaveLength(1);
    },
  );

  it('merges 10,000 conditions of its own type, and keeps 10,000 of another type', () => {
    const of = (type: string): object[] => Array.from({ length: 10_000 }, () => ({ ...presentCondition, type }));
    expect(withConditions(of('Accepted'), [acceptedCondition], observation)).toEqual([presentCondition]);
    expect(withConditions(of('Other'), [acceptedCondition], observation)).toHaveLength(10_001);
  });

  it('ignores a generation that is not a number', () => {
    for (const observedGeneration of ['x', {}, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(isObservedLater({ observedGeneration }, 3)).toBe(false);
    }
    expect(isObservedLater('nothing', 3)).toBe(false);
    expect(isObservedLater({ observedGeneration: 9 }, undefined)).toBe(false);
  });
});

describe('withConditions with reasons and messages that the API does not accept', () => {
  const one = (fields: Partial<DesiredCondition>): Record<string, unknown> =>
    withConditions([], [{ ...acceptedCondition, ...fields }], observation)[0] as Record<string, unknown>;

  it.each([
    ['No such backend!', 'Nosuchbackend'],
    ['9lives', 'lives'],
    ['', 'Unknown'],
    ['Ends,:', 'Ends'],
    ['x'.repeat(2_000), 'x'.repeat(1_024)],
  ])('changes the invalid reason %j to %j', (reason, legal) => {
    expect(one({ reason }).reason).toBe(legal);
  });

  it('escapes control characters, bidirectional controls and lone surrogates in a message', () => {
    expect(one({ message: 'no\r\n\u001b[31mService \u202etxt\u2028é' }).message).toBe(
      'no\\r\\n\\x1b[31mService \\u202etxt\\u2028é',
    );
    expect(one({ message: 'a\uD800' }).message).toBe('a\\ud800');
  });

  it('truncates a long message between characters and between escapes', () => {
    expect(one({ message: `${'a'.repeat(32_766)}😀😀` }).message).toBe(`${'a'.repeat(32_766)}…`);
    expect(one({ message: `${'a'.repeat(32_766)}\u202e` }).message).toBe(`${'a'.repeat(32_766)}…`);
    expect(one({ message: 'b'.repeat(32_768) }).message).toHaveLength(32_768);
  });
});
