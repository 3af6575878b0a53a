import { describe, expect, it } from 'vitest';
import { isObservedLater, type WantedCondition, withConditions } from './status-conditions.ts';

const accepted: WantedCondition = { type: 'Accepted', status: 'True', reason: 'Accepted', message: 'is in force' };
const moment = { generation: 3, time: '2026-11-27T12:00:00Z' };
const said = {
  ...{ type: 'Accepted', status: 'True', reason: 'Accepted', message: 'is in force' },
  ...{ lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 3 },
};
const foreign = { type: 'Audited', status: 'True', reason: 'ByHand', extra: { of: 'somebody' } };

describe('lastTransitionTime', () => {
  it.each([
    ['is now for a condition that is new', [], moment.time],
    ['is now when the status has changed', [{ ...said, status: 'False' }], moment.time],
    ['stays when the message alone is another', [{ ...said, message: 'was' }], said.lastTransitionTime],
    [
      'stays when the reason and generation are others',
      [{ ...said, reason: 'Old', observedGeneration: 1 }],
      said.lastTransitionTime,
    ],
    ['is now where what was there is no time', [{ ...said, lastTransitionTime: 'yesterday' }], moment.time],
  ])('%s', (_, present, time) => {
    expect(withConditions(present, [accepted], moment)).toEqual([{ ...said, lastTransitionTime: time }]);
  });
});

describe('among others', () => {
  it('a condition keeps its place, and those of others keep theirs and all that they say', () => {
    const present = [foreign, { ...said, message: 'was' }, 'what is no condition', { type: 7 }];
    expect(withConditions(present, [accepted], moment)).toEqual([foreign, said, 'what is no condition', { type: 7 }]);
  });

  it('a new one comes last, and one that is said no more goes', () => {
    const programmed = { ...said, type: 'Programmed' };
    const after = withConditions([programmed, foreign], [accepted], moment, ['Programmed']);
    expect(after).toEqual([foreign, { ...said, lastTransitionTime: moment.time }]);
  });

  it('nothing that is the same is another list', () => {
    const present = [foreign, said];
    expect(withConditions(present, [accepted], moment)).toBe(present);
  });

  it('one that was said of a newer generation stays', () => {
    for (const observedGeneration of [4, '4']) {
      const present = [{ ...said, status: 'False', observedGeneration }];
      expect(withConditions(present, [accepted], moment)).toBe(present);
    }
  });

  it('a generation that is a text, as the resources of Istio allow, is said as one again where it is the same', () => {
    const present = [{ ...said, observedGeneration: '3' }];
    expect(withConditions(present, [accepted], moment)).toBe(present);
  });
});

describe('what a stranger wrote', () => {
  it.each(['a text', 7, null, { length: 3 }, undefined])(
    '%j is no list of conditions: ours is the first',
    (present) => {
      expect(withConditions(present, [accepted], moment)).toHaveLength(1);
    },
  );

  it('ten thousand conditions of our type become one, and ten thousand of another stay and grow by one', () => {
    const of = (type: string): object[] => Array.from({ length: 10_000 }, () => ({ ...said, type }));
    expect(withConditions(of('Accepted'), [accepted], moment)).toEqual([said]);
    expect(withConditions(of('Other'), [accepted], moment)).toHaveLength(10_001);
  });

  it('a generation that is no number says nothing', () => {
    for (const observedGeneration of ['x', {}, Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(isObservedLater({ observedGeneration }, 3)).toBe(false);
    }
    expect(isObservedLater('nothing', 3)).toBe(false);
    expect(isObservedLater({ observedGeneration: 9 }, undefined)).toBe(false);
  });
});

describe('bounds of the API', () => {
  const one = (fields: Partial<WantedCondition>): Record<string, unknown> =>
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
