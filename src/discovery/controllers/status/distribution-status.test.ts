import { describe, expect, it } from 'vitest';
import { isObject } from '../../../runtime/json-object.ts';
import type { ObjectFindings } from '../../distribution/object-findings.ts';
import { DistributionStatus, RejectionStatus } from './distribution-status.ts';
import { ReplicaWords, signed } from './replica-words.ts';

const of = { kind: 'EnvoyFilter', namespace: 'shop', name: 'ring' };
const time = '2026-11-27T12:00:00Z';
const me = 'istiod-a_11111111';
const other = 'istiod-b_22222222';

function given(verdict: ObjectFindings, present: object = {}) {
  const looks: string[] = [];
  const known = {
    findingsOf: () => verdict,
    unfinished: ['EnvoyFilter/shop/ring'],
    compareAllStatuses: () => looks.push('all'),
  };
  const words = new ReplicaWords(me);
  const object = { metadata: { name: 'ring', namespace: 'shop' }, status: present };
  words.read('EnvoyFilter', [{ event: 'add', key: 'shop/ring', object }]);
  return { source: new DistributionStatus(known, words), own: new RejectionStatus(known, words), words, looks };
}

/** Conditions, in short. */
function short(status: unknown): string[] | undefined {
  if (!isObject(status)) return undefined;
  return (status.conditions as unknown[]).map((one) =>
    isObject(one) ? `${one.type} ${one.status} ${one.reason} ${one.observedGeneration}` : String(one),
  );
}

/** Of the next status by the one that leads. */
function next(verdict: ObjectFindings, present: object = {}): string[] {
  return short(
    given(verdict, present)
      .source.wanted(of)!
      .next(present as never, time),
  )!;
}

/** By one that does not lead; undefined: it writes nothing. */
function nextOfOther(verdict: ObjectFindings, present: object = {}): string[] | undefined {
  return short(
    given(verdict, present)
      .own.wanted(of)
      ?.next(present as never, time),
  );
}

const rejection = { proxies: 1, resource: 'cluster a', reason: 'no' };
const foreign = { type: 'Audited', status: 'True', reason: 'ByHand' };
const before = [
  { type: 'Rejected', status: 'True', reason: 'RejectedByEnvoy', observedGeneration: 1 },
  foreign,
  { type: 'Reconciled', status: 'False', reason: 'Rejected', observedGeneration: 1 },
];
const complete: ObjectFindings = { distribution: { generation: 2, upToDate: 3, concerned: 3 } };
const rejecting: ObjectFindings = { distribution: { generation: 2, upToDate: 2, concerned: 3, rejection } };

/** A status in which a replica says that something is rejected. */
const wordOf = (identity: string, observedGeneration = 2, message = 'no') => ({
  conditions: [
    {
      ...{ type: 'Rejected', status: 'True', reason: 'RejectedByEnvoy', message: signed(message, identity) },
      ...{ observedGeneration, lastTransitionTime: time },
    },
  ],
});

describe('the status of an object', () => {
  it('is of nothing where nothing is known', () => {
    expect(given({}).source.wanted(of)).toBeUndefined();
    expect(given({}, wordOf(me)).own.wanted(of)).toBeUndefined();
  });

  it('says that it is in all proxies, and nothing of before; what others say stays in its place', () => {
    expect(next(complete, { conditions: before })).toEqual([
      'Audited True ByHand undefined',
      'Reconciled True UpToDate 2',
    ]);
  });

  it('has no counts from before the replica led, for they lack the proxies of other replicas', () => {
    const own: ObjectFindings = { distribution: { generation: 2, upToDate: 0, concerned: 0, isOwnOnly: true } };
    expect(given(own).source.wanted(of)).toBeUndefined();
    const mistake = { generation: 3, text: 'spec.a: must be a number' };
    expect(next({ ...own, error: mistake })).toEqual(['Reconciled False Invalid 3', 'Invalid True InvalidObject 3']);
  });

  it('says what is rejected, and who says so', () => {
    expect(next(rejecting)).toEqual(['Reconciled False Rejected 2', 'Rejected True RejectedByEnvoy 2']);
    expect(given(rejecting).source.wanted(of)!.next({}, time)!.conditions).toContainEqual(
      expect.objectContaining({ message: `1 of 3 proxies reject cluster a: no (reported by ${me})` }),
    );
  });

  it('says of which version it is that it speaks', () => {
    expect(next({ ...rejecting, error: { generation: 3, text: 'wrong' } })).toEqual([
      'Reconciled False Invalid 3',
      'Invalid True InvalidObject 3',
      'Rejected True RejectedByEnvoy 2',
    ]);
  });

  it('keeps what is beside the conditions', () => {
    const distribution = { generation: 2, upToDate: 0, concerned: 0 };
    expect(given({ distribution }).source.wanted(of)!.next({ other: 1 }, time)).toMatchObject({ other: 1 });
    expect(next({ distribution })).toEqual(['Reconciled True NoProxies 2']);
  });
});

describe('beside the word of another replica', () => {
  const both = ['Rejected True RejectedByEnvoy 2', 'Reconciled False Rejected 2'];

  it('the leader does not call an object complete, lets the word be, and writes it once', () => {
    const present = wordOf(other);
    const status = given(complete, present).source.wanted(of)!.next(present, time)!;
    expect(short(status)).toEqual(both);
    expect(status.conditions).toContainEqual(present.conditions[0]);
    expect(status.conditions).toContainEqual(
      expect.objectContaining({ message: '3/3 proxies up to date, proxies of another replica reject it' }),
    );
    expect(given(complete, status).source.wanted(of)!.next(status, time)).toEqual(status);
    // Its own proxies reject it as well: one says so.
    expect(next(rejecting, present)).toEqual(both);
  });

  it('the leader takes away what is of an older version, unsigned, or of itself', () => {
    const free = [wordOf(other, 1), wordOf(me), { conditions: before }, wordOf('nobody')];
    for (const present of free) expect(next(complete, present).join()).not.toContain('Rejected');
  });

  it('the leader takes away that of a replica that is no more, and not what it says anew', () => {
    const present = wordOf(other);
    const { source, words } = given(complete, present);
    words.ended('istiod-replica-22222222');
    expect(short(source.wanted(of)!.next(present, time))).toEqual(['Reconciled True UpToDate 2']);
    expect(short(source.wanted(of)!.next(wordOf(other, 2, 'still'), time))).toEqual(both);
  });

  it('one that does not lead says what its proxies reject, and nothing else', () => {
    expect(nextOfOther(rejecting)).toEqual(['Rejected True RejectedByEnvoy 2']);
    expect(nextOfOther(rejecting, { conditions: [{ type: 'Reconciled', status: 'True' }] })).toEqual([
      'Reconciled True undefined undefined',
      'Rejected True RejectedByEnvoy 2',
    ]);
    expect(nextOfOther(complete)).toBeUndefined();
    expect(nextOfOther({ error: { generation: 2, text: 'wrong' } })).toBeUndefined();
  });

  it('one that does not lead takes the place of a word of an older version or a dead replica, and of no other one', () => {
    expect(nextOfOther(rejecting, wordOf(other))).toBeUndefined();
    expect(nextOfOther(rejecting, wordOf(other, 1))).toEqual(['Rejected True RejectedByEnvoy 2']);
    const { own, words } = given(rejecting, wordOf(other));
    words.ended('istiod-replica-22222222');
    expect(short(own.wanted(of)!.next(wordOf(other), time))).toEqual(['Rejected True RejectedByEnvoy 2']);
  });

  it('one that does not lead takes away its own word and that of a dead replica', () => {
    expect(nextOfOther(complete, wordOf(me))).toEqual([]);
    const ofOthers = [wordOf(other), wordOf(other, 1), { conditions: before }];
    for (const present of ofOthers) expect(nextOfOther(complete, present)).toBeUndefined();
    const { own, words } = given(complete, wordOf(other));
    words.ended('istiod-replica-22222222');
    expect(short(own.wanted(of)!.next(wordOf(other), time))).toEqual([]);
    // As it was read meanwhile, it is of one that lives.
    expect(own.wanted(of)!.next(wordOf('istiod-c_33333333'), time)).toBeUndefined();
  });
});

it('a new leader looks at all objects', () => {
  const { source, looks } = given({});
  expect([...source.all()]).toEqual([of]);
  expect(looks).toEqual(['all']);
  const { own, looks: ofOther } = given({});
  expect([...own.all()]).toEqual([of]);
  expect(ofOther).toEqual([]);
});
