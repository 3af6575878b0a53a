import { describe, expect, it } from 'vitest';
import { parseReport, RejectionReports, signMessage } from './rejection-reports.ts';

const me = 'istiod-a_11111111';
const other = 'istiod-b_22222222';
const lease = 'istiod-replica-22222222';

const conditionsOf = (message: unknown, observedGeneration: unknown = 1) => [
  { type: 'Audited', status: 'True' },
  { type: 'Rejected', status: 'True', message, observedGeneration },
];

describe('the reporting replica of a condition', () => {
  it('is read from the end of the message, after the text from Envoy', () => {
    const message = signMessage('no (reported by istiod-c_33333333)\n(reported by ', other);
    expect(parseReport(conditionsOf(message, '7'))).toEqual({ identity: other, generation: 7, message });
  });

  it('is read from the message format of an earlier version', () => {
    expect(parseReport(conditionsOf(`no (told by ${other})`))).toMatchObject({ identity: other });
  });

  it('is unknown if the message is unsigned or was changed by another writer', () => {
    const strangeStatuses = [
      undefined,
      7,
      '',
      'no',
      'no (reported by istiod)',
      'no (reported by a b_11111111)',
      `(reported by ${'x'.repeat(500)}_11111111)`,
    ];
    for (const message of strangeStatuses) expect(parseReport(conditionsOf(message))).toBeUndefined();
    for (const generation of ['x', '', null, { valueOf: 1, toString: 1 }]) {
      expect(parseReport(conditionsOf(signMessage('no', other), generation))).toBeUndefined();
    }
    for (const conditions of [undefined, {}, 'no', [null, 'Rejected', []]])
      expect(parseReport(conditions)).toBeUndefined();
  });
});

function createReports() {
  const reports = new RejectionReports(me);
  const notifications: string[] = [];
  reports.onChanged((key, previousReport) =>
    notifications.push(`${key} ${previousReport?.identity} ${reports.reportOf(key)?.identity}`),
  );
  const setMessage = (name: string, message: string | undefined, generation = 1) => {
    const conditions = message === undefined ? [] : conditionsOf(message, generation);
    reports.read('EnvoyFilter', [
      { event: 'add', key: `shop/${name}`, object: { metadata: { name, namespace: 'shop' }, status: { conditions } } },
    ]);
  };
  return { words: reports, told: notifications, say: setMessage };
}

describe('reports of replicas', () => {
  it('notify watchers when the replica or version changes or the report is removed, but not when counts change', () => {
    const { words, told: notifications, say: setMessage } = createReports();
    setMessage('a', signMessage('1 of 2', other));
    setMessage('a', signMessage('2 of 2', other));
    setMessage('a', signMessage('2 of 2', other), 2);
    setMessage('a', signMessage('1 of 1', me), 2);
    setMessage('b', 'unsigned');
    words.read('EnvoyFilter', [{ event: 'delete', key: 'shop/a', previous: { metadata: { name: 'a' } } }]);
    expect(notifications).toEqual([
      `EnvoyFilter/shop/a undefined ${other}`,
      `EnvoyFilter/shop/a ${other} ${other}`,
      `EnvoyFilter/shop/a ${other} ${me}`,
      `EnvoyFilter/shop/a ${me} undefined`,
    ]);
  });

  it('are obsolete after their replica exits, unless they are repeated', () => {
    const { words, told: notifications, say: setMessage } = createReports();
    const key = 'EnvoyFilter/shop/a';
    setMessage('a', signMessage('no', other));
    setMessage('b', signMessage('no', me));
    expect([...words.leases]).toEqual([lease]);
    const report = words.reportOf(key)!;
    expect(words.isEnded(key, report)).toBe(false);
    words.onReplicaEnded(lease);
    words.onReplicaEnded(lease);
    expect(notifications.slice(2)).toEqual([`${key} ${other} ${other}`]);
    expect([words.isEnded(key, report), words.leases.size]).toEqual([true, 0]);
    setMessage('a', signMessage('still no', other));
    expect(words.isEnded(key, words.reportOf(key)!)).toBe(false);
    expect([...words.leases]).toEqual([lease]);
  });

  it('notify watchers even beyond the cache limit', () => {
    const { words, told: notifications, say: setMessage } = createReports();
    for (let index = 0; index < 5_000; index++) setMessage(`${index}`, signMessage('no', other));
    expect(notifications).toHaveLength(5_000);
    expect(words.reportOf('EnvoyFilter/shop/0')?.identity).toBe(other);
    expect(words.reportOf('EnvoyFilter/shop/4999')).toBeUndefined();
  });
});
