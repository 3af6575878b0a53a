import { describe, expect, it } from 'vitest';
import { ReplicaWords, signed, wordIn } from './replica-words.ts';

const me = 'istiod-a_11111111';
const other = 'istiod-b_22222222';
const lease = 'istiod-replica-22222222';

const conditionsOf = (message: unknown, observedGeneration: unknown = 1) => [
  { type: 'Audited', status: 'True' },
  { type: 'Rejected', status: 'True', message, observedGeneration },
];

describe('whose word a condition is', () => {
  it('stands at its end, whatever Envoy has said before it', () => {
    const message = signed('no (reported by istiod-c_33333333)\n(reported by ', other);
    expect(wordIn(conditionsOf(message, '7'))).toEqual({ identity: other, generation: 7, message });
  });

  it('is read in the form of an earlier version', () => {
    expect(wordIn(conditionsOf(`no (told by ${other})`))).toMatchObject({ identity: other });
  });

  it('is nobody’s where it does not say so, or a stranger has made it', () => {
    const strange = [
      undefined,
      7,
      '',
      'no',
      'no (reported by istiod)',
      'no (reported by a b_11111111)',
      `(reported by ${'x'.repeat(500)}_11111111)`,
    ];
    for (const message of strange) expect(wordIn(conditionsOf(message))).toBeUndefined();
    for (const generation of ['x', '', null, { valueOf: 1, toString: 1 }]) {
      expect(wordIn(conditionsOf(signed('no', other), generation))).toBeUndefined();
    }
    for (const conditions of [undefined, {}, 'no', [null, 'Rejected', []]]) expect(wordIn(conditions)).toBeUndefined();
  });
});

/** What is told of, as statuses of an object come. */
function given() {
  const words = new ReplicaWords(me);
  const told: string[] = [];
  words.onChanged((key, before) => told.push(`${key} ${before?.identity} ${words.wordOn(key)?.identity}`));
  const say = (name: string, message: string | undefined, generation = 1) => {
    const conditions = message === undefined ? [] : conditionsOf(message, generation);
    words.read('EnvoyFilter', [
      { event: 'add', key: `shop/${name}`, object: { metadata: { name, namespace: 'shop' }, status: { conditions } } },
    ]);
  };
  return { words, told, say };
}

describe('words of replicas', () => {
  it('are told of when they are of another replica or version, or are no more, and not when a number in them is another', () => {
    const { words, told, say } = given();
    say('a', signed('1 of 2', other));
    say('a', signed('2 of 2', other));
    say('a', signed('2 of 2', other), 2);
    say('a', signed('1 of 1', me), 2);
    say('b', 'unsigned');
    words.read('EnvoyFilter', [{ event: 'delete', key: 'shop/a', previous: { metadata: { name: 'a' } } }]);
    expect(told).toEqual([
      `EnvoyFilter/shop/a undefined ${other}`,
      `EnvoyFilter/shop/a ${other} ${other}`,
      `EnvoyFilter/shop/a ${other} ${me}`,
      `EnvoyFilter/shop/a ${me} undefined`,
    ]);
  });

  it('end with their replica, and those that are said anew do not', () => {
    const { words, told, say } = given();
    const key = 'EnvoyFilter/shop/a';
    say('a', signed('no', other));
    say('b', signed('no', me));
    expect([...words.leases]).toEqual([lease]);
    const word = words.wordOn(key)!;
    expect(words.isEnded(key, word)).toBe(false);
    words.ended(lease);
    words.ended(lease);
    expect(told.slice(2)).toEqual([`${key} ${other} ${other}`]);
    expect([words.isEnded(key, word), words.leases.size]).toEqual([true, 0]);
    say('a', signed('still no', other));
    expect(words.isEnded(key, words.wordOn(key)!)).toBe(false);
    expect([...words.leases]).toEqual([lease]);
  });

  it('of more objects than can be kept are told of, and the others are known', () => {
    const { words, told, say } = given();
    for (let index = 0; index < 5_000; index++) say(`${index}`, signed('no', other));
    expect(told).toHaveLength(5_000);
    expect(words.wordOn('EnvoyFilter/shop/0')?.identity).toBe(other);
    expect(words.wordOn('EnvoyFilter/shop/4999')).toBeUndefined();
  });
});
