import { describe, expect, it } from 'vitest';
import { isObject } from '../../../runtime/json-object.ts';
import type { ObjectVerdict } from '../../distribution/object-verdict.ts';
import { DistributionStatus } from './distribution-status.ts';

const of = { kind: 'EnvoyFilter', namespace: 'shop', name: 'ring' };
const time = '2026-11-27T12:00:00Z';

function given(verdict: ObjectVerdict) {
  const looks: string[] = [];
  const known = { verdictOf: () => verdict, unfinished: ['EnvoyFilter/shop/ring'], lookAtAll: () => looks.push('all') };
  return { source: new DistributionStatus(known), looks };
}

/** Conditions of the next status, in short. */
function next(verdict: ObjectVerdict, present: object = {}): string[] {
  const { conditions } = given(verdict)
    .source.wanted(of)!
    .next(present as never, time)!;
  return (conditions as unknown[]).map((one) =>
    isObject(one) ? `${one.type} ${one.status} ${one.reason} ${one.observedGeneration}` : String(one),
  );
}

const rejection = { proxies: 1, resource: 'cluster a', reason: 'no' };
const foreign = { type: 'Audited', status: 'True', reason: 'ByHand' };
const before = [
  { type: 'Rejected', status: 'True', reason: 'RejectedByEnvoy', observedGeneration: 1 },
  foreign,
  { type: 'Reconciled', status: 'False', reason: 'Rejected', observedGeneration: 1 },
];

describe('the status of an object', () => {
  it('is of nothing where nothing is known', () => {
    expect(given({}).source.wanted(of)).toBeUndefined();
  });

  it('says that it is in all proxies, and nothing of before; what others say stays in its place', () => {
    const distribution = { generation: 2, upToDate: 3, concerned: 3 };
    expect(next({ distribution }, { conditions: before })).toEqual([
      'Audited True ByHand undefined',
      'Reconciled True UpToDate 2',
    ]);
  });

  it('says what is rejected', () => {
    const distribution = { generation: 2, upToDate: 2, concerned: 3, rejection };
    expect(next({ distribution })).toEqual(['Reconciled False Rejected 2', 'Rejected True RejectedByEnvoy 2']);
  });

  it('says of which version it is that it speaks', () => {
    const distribution = { generation: 2, upToDate: 2, concerned: 3, rejection };
    expect(next({ distribution, mistake: { generation: 3, text: 'wrong' } })).toEqual([
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

it('a new leader looks at all objects', () => {
  const { source, looks } = given({});
  expect([...source.all()]).toEqual([of]);
  expect(looks).toEqual(['all']);
});
