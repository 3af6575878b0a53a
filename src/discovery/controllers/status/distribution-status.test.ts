import { describe, expect, it } from 'vitest';
import { isObject } from '../../../runtime/json-object.ts';
import type { ObjectFindings } from '../../distribution/object-findings.ts';
import { DistributionStatus, FollowerStatus } from './distribution-status.ts';
import { RejectionReports, signMessage } from './rejection-reports.ts';

const of = { kind: 'EnvoyFilter', namespace: 'shop', name: 'ring' };
const time = '2026-11-27T12:00:00Z';
const me = 'istiod-a_11111111';
const other = 'istiod-b_22222222';

function createStatus(findings: ObjectFindings, present: object = {}) {
  const checkCalls: string[] = [];
  const source = {
    findingsOf: () => findings,
    unfinishedKeys: ['EnvoyFilter/shop/ring'],
    compareAllStatuses: () => checkCalls.push('all'),
  };
  const reports = new RejectionReports(me);
  const object = { metadata: { name: 'ring', namespace: 'shop' }, status: present };
  reports.read('EnvoyFilter', [{ event: 'add', key: 'shop/ring', object }]);
  return {
    source: new DistributionStatus(source, reports),
    followerStatus: new FollowerStatus(source, reports),
    reports,
    checkCalls,
  };
}

/** Conditions as short text. */
function conditionTexts(status: unknown): string[] | undefined {
  if (!isObject(status)) return undefined;
  return (status.conditions as unknown[]).map((one) =>
    isObject(one) ? `${one.type} ${one.status} ${one.reason} ${one.observedGeneration}` : String(one),
  );
}

/** Next status that the leader writes. */
function next(findings: ObjectFindings, present: object = {}): string[] {
  return conditionTexts(
    createStatus(findings, present)
      .source.desiredStatus(of)!
      .next(present as never, time),
  )!;
}

/** Next status that a follower writes; `undefined` if it writes none. */
function nextOfOther(findings: ObjectFindings, present: object = {}): string[] | undefined {
  return conditionTexts(
    createStatus(findings, present)
      .followerStatus.desiredStatus(of)
      ?.next(present as never, time),
  );
}

const rejection = { proxies: 1, resource: 'cluster a', reason: 'no' };
const foreignCondition = { type: 'Audited', status: 'True', reason: 'ByHand' };
const presentConditions = [
  { type: 'Rejected', status: 'True', reason: 'RejectedByEnvoy', observedGeneration: 1 },
  foreignCondition,
  { type: 'Reconciled', status: 'False', reason: 'Rejected', observedGeneration: 1 },
];
const complete: ObjectFindings = { distribution: { generation: 2, upToDate: 3, concerned: 3 } };
const rejectingFindings: ObjectFindings = { distribution: { generation: 2, upToDate: 2, concerned: 3, rejection } };

/** Status in which a replica reports a rejection. */
const reportOf = (identity: string, observedGeneration = 2, message = 'no') => ({
  conditions: [
    {
      ...{ type: 'Rejected', status: 'True', reason: 'RejectedByEnvoy', message: signMessage(message, identity) },
      ...{ observedGeneration, lastTransitionTime: time },
    },
  ],
});

describe('the distribution status of an object', () => {
  it('has no conditions if there are no findings', () => {
    expect(createStatus({}).source.desiredStatus(of)).toBeUndefined();
    expect(createStatus({}, reportOf(me)).followerStatus.desiredStatus(of)).toBeUndefined();
  });

  it('states that all proxies applied the object, and keeps conditions of other writers in place', () => {
    expect(next(complete, { conditions: presentConditions })).toEqual([
      'Audited True ByHand undefined',
      'Reconciled True UpToDate 2',
    ]);
  });

  it('has no counts from before the term, because these lack proxies of other replicas', () => {
    const ownFindings: ObjectFindings = { distribution: { generation: 2, upToDate: 0, concerned: 0, isOwnOnly: true } };
    expect(createStatus(ownFindings).source.desiredStatus(of)).toBeUndefined();
    const violation = { generation: 3, text: 'spec.a: must be a number' };
    expect(next({ ...ownFindings, error: violation })).toEqual([
      'Reconciled False Invalid 3',
      'Invalid True InvalidObject 3',
    ]);
  });

  it('contains the rejection and the reporting replica', () => {
    expect(next(rejectingFindings)).toEqual(['Reconciled False Rejected 2', 'Rejected True RejectedByEnvoy 2']);
    expect(createStatus(rejectingFindings).source.desiredStatus(of)!.next({}, time)!.conditions).toContainEqual(
      expect.objectContaining({ message: `1 of 3 proxies reject cluster a: no (reported by ${me})` }),
    );
  });

  it('contains the observed generation', () => {
    expect(next({ ...rejectingFindings, error: { generation: 3, text: 'wrong' } })).toEqual([
      'Reconciled False Invalid 3',
      'Invalid True InvalidObject 3',
      'Rejected True RejectedByEnvoy 2',
    ]);
  });

  it('keeps fields other than the conditions', () => {
    const distribution = { generation: 2, upToDate: 0, concerned: 0 };
    expect(createStatus({ distribution }).source.desiredStatus(of)!.next({ other: 1 }, time)).toMatchObject({
      other: 1,
    });
    expect(next({ distribution })).toEqual(['Reconciled True NoProxies 2']);
  });
});

describe('a distribution status with a report of another replica', () => {
  const bothConditions = ['Rejected True RejectedByEnvoy 2', 'Reconciled False Rejected 2'];

  it('keeps the report and stays incomplete when the leader writes it', () => {
    const present = reportOf(other);
    const status = createStatus(complete, present).source.desiredStatus(of)!.next(present, time)!;
    expect(conditionTexts(status)).toEqual(bothConditions);
    expect(status.conditions).toContainEqual(present.conditions[0]);
    expect(status.conditions).toContainEqual(
      expect.objectContaining({ message: '3/3 proxies up to date, proxies of another replica reject it' }),
    );
    expect(createStatus(complete, status).source.desiredStatus(of)!.next(status, time)).toEqual(status);
    // Proxies of this replica reject the object too, but one report is enough.
    expect(next(rejectingFindings, present)).toEqual(bothConditions);
  });

  it("loses reports that are outdated, unsigned or the leader's own when the leader writes it", () => {
    const outdatedReports = [reportOf(other, 1), reportOf(me), { conditions: presentConditions }, reportOf('nobody')];
    for (const present of outdatedReports) expect(next(complete, present).join()).not.toContain('Rejected');
  });

  it('loses the report of an exited replica when the leader writes it, unless the report is repeated', () => {
    const present = reportOf(other);
    const { source, reports } = createStatus(complete, present);
    reports.onReplicaEnded('istiod-replica-22222222');
    expect(conditionTexts(source.desiredStatus(of)!.next(present, time))).toEqual(['Reconciled True UpToDate 2']);
    expect(conditionTexts(source.desiredStatus(of)!.next(reportOf(other, 2, 'still'), time))).toEqual(bothConditions);
  });

  it("contains only rejections by a follower's own proxies if the follower writes it", () => {
    expect(nextOfOther(rejectingFindings)).toEqual(['Rejected True RejectedByEnvoy 2']);
    expect(nextOfOther(rejectingFindings, { conditions: [{ type: 'Reconciled', status: 'True' }] })).toEqual([
      'Reconciled True undefined undefined',
      'Rejected True RejectedByEnvoy 2',
    ]);
    expect(nextOfOther(complete)).toBeUndefined();
    expect(nextOfOther({ error: { generation: 2, text: 'wrong' } })).toBeUndefined();
  });

  it('is replaced by a follower only if the report is about an older version or from an exited replica', () => {
    expect(nextOfOther(rejectingFindings, reportOf(other))).toBeUndefined();
    expect(nextOfOther(rejectingFindings, reportOf(other, 1))).toEqual(['Rejected True RejectedByEnvoy 2']);
    const { followerStatus, reports } = createStatus(rejectingFindings, reportOf(other));
    reports.onReplicaEnded('istiod-replica-22222222');
    expect(conditionTexts(followerStatus.desiredStatus(of)!.next(reportOf(other), time))).toEqual([
      'Rejected True RejectedByEnvoy 2',
    ]);
  });

  it("loses a follower's own report and the report of an exited replica when the follower writes it", () => {
    expect(nextOfOther(complete, reportOf(me))).toEqual([]);
    const otherReports = [reportOf(other), reportOf(other, 1), { conditions: presentConditions }];
    for (const present of otherReports) expect(nextOfOther(complete, present)).toBeUndefined();
    const { followerStatus, reports } = createStatus(complete, reportOf(other));
    reports.onReplicaEnded('istiod-replica-22222222');
    expect(conditionTexts(followerStatus.desiredStatus(of)!.next(reportOf(other), time))).toEqual([]);
    // The report was repeated, so its replica is running.
    expect(followerStatus.desiredStatus(of)!.next(reportOf('istiod-c_33333333'), time)).toBeUndefined();
  });
});

it('a new leader checks all objects', () => {
  const { source, checkCalls } = createStatus({});
  expect([...source.allRefs()]).toEqual([of]);
  expect(checkCalls).toEqual(['all']);
  const { followerStatus, checkCalls: followerCalls } = createStatus({});
  expect([...followerStatus.allRefs()]).toEqual([of]);
  expect(followerCalls).toEqual([]);
});
