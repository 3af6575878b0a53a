import { describe, expect, it } from 'vitest';
import {
  maxReportBytes,
  maxReportedObjects,
  mergeCounts,
  OwnCounts,
  type ReplicaReport,
  readReport,
} from './replica-report.ts';

const withoutStatus = { statusOf: () => ({ conditions: new Map() }) };

function parsed(text: string): ReplicaReport {
  const report = readReport(text);
  if (typeof report === 'string') throw new Error(report);
  return report;
}

const routeKey = (index: number): string => `VirtualService/shop/route-${index}`;

/** Counts of a replica with this number of pending objects. */
function pending(objects: number): OwnCounts {
  const counts = new OwnCounts('');
  for (let index = 0; index < objects; index++) {
    counts.record(routeKey(index), { generation: 1, upToDate: 0, concerned: 1 }, 0);
  }
  return counts;
}

describe('the report of a replica', () => {
  it('contains the revision and the latest counts of each object, and can be parsed again', () => {
    const counts = new OwnCounts('canary');
    counts.record('VirtualService/shop/a', { generation: 1, upToDate: 0, concerned: 2 }, 0);
    counts.record('VirtualService/shop/"b"', { generation: 7, upToDate: 3, concerned: 3 }, 0);
    counts.record('VirtualService/shop/a', { generation: 2, upToDate: 2, concerned: 2 }, 0);
    const { revision, counts: read } = parsed(counts.report(0, withoutStatus));
    expect(revision).toBe('canary');
    expect(Object.fromEntries(read)).toEqual({
      'VirtualService/shop/a': { generation: 2, upToDate: 2, concerned: 2 },
      'VirtualService/shop/"b"': { generation: 7, upToDate: 3, concerned: 3 },
    });
  });

  it('has at most 16 KiB, and consecutive reports contain all objects', () => {
    const counts = pending(2_000);
    let mergedCounts: ReturnType<typeof mergeCounts> = new Map();
    let reports = 0;
    while (mergedCounts.size < 2_000 && reports < 20) {
      const text = counts.report(0, withoutStatus);
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(maxReportBytes);
      mergedCounts = mergeCounts(mergedCounts, parsed(text).counts);
      reports++;
    }
    expect(reports).toBe(5);
  });

  it('contains changed counts first if not all counts fit', () => {
    const counts = pending(2_000);
    counts.report(0, withoutStatus);
    counts.record(routeKey(0), { generation: 1, upToDate: 1, concerned: 1 }, 0);
    counts.record(routeKey(1), { generation: 1, upToDate: 0, concerned: 1 }, 0);
    for (let index = 0; index < 6; index++) counts.report(0, withoutStatus);
    counts.record(routeKey(7), { generation: 2, upToDate: 0, concerned: 1 }, 0);
    expect([...parsed(counts.report(0, withoutStatus)).counts.keys()][0]).toBe(routeKey(7));
  });

  it('contains only the newest 4,096 objects, both when written and when parsed', () => {
    const counts = pending(5_000);
    let mergedCounts: ReturnType<typeof mergeCounts> = new Map([
      ['Gateway/shop/a', { generation: 1, upToDate: 0, concerned: 0 }],
    ]);
    for (let report = 0; report < 20; report++)
      mergedCounts = mergeCounts(mergedCounts, parsed(counts.report(0, withoutStatus)).counts);
    expect(mergedCounts.size).toBe(maxReportedObjects);
    expect(
      [...mergedCounts.keys()].filter(
        (key) => Number(key.slice(key.lastIndexOf('-') + 1)) < 5_000 - maxReportedObjects,
      ),
    ).toEqual([]);
  });

  it('omits an object after 60 s if the object has no chartpilot status', () => {
    const counts = new OwnCounts('');
    counts.record('Gateway/shop/a', { generation: 1, upToDate: 0, concerned: 0 }, 0);
    expect(parsed(counts.report(59_999, withoutStatus)).counts.size).toBe(1);
    expect(parsed(counts.report(60_000, withoutStatus)).counts.size).toBe(0);
  });

  it('omits an object whose status is True, unless a proxy of this replica lacks the object', () => {
    const trueCondition = { status: 'True' as const, observedGeneration: 1 };
    const isTrue = { statusOf: () => ({ conditions: new Map([['Reconciled', trueCondition]]) }) };
    const counts = new OwnCounts('');
    counts.record('Gateway/shop/a', { generation: 1, upToDate: 1, concerned: 1 }, 0);
    counts.record('Gateway/shop/b', { generation: 1, upToDate: 1, concerned: 2 }, 0);
    counts.record('Gateway/shop/c', { generation: 2, upToDate: 1, concerned: 1 }, 0);
    expect([...parsed(counts.report(0, isTrue)).counts.keys()]).toEqual(['Gateway/shop/b', 'Gateway/shop/c']);
  });

  it.each([
    undefined,
    7,
    '',
    '[]',
    '{',
    'null',
    '{}',
    '{"revision":1,"counts":{}}',
    '{"revision":"","counts":[]}',
    '{"revision":"","counts":{"a":[1,2,1]}}',
    '{"revision":"","counts":{"a":[1,-1,0]}}',
    '{"revision":"","counts":{"a":[1,1]}}',
    '{"revision":"","counts":{"a":"x"}}',
    '{"revision":"","counts":{"a":[1,0.5,1]}}',
    '{"revision":"","counts":{"a":[1,1e15,1e15]}}',
    `{"revision":"${'x'.repeat(maxReportBytes)}","counts":{}}`,
  ])('is rejected with a reason if it is %j', (text) => {
    expect(readReport(text)).toEqual(expect.any(String));
  });
});
