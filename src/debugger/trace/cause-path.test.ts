import { describe, expect, test } from 'vitest';
import { eventBody } from '../../../test/fixtures/event-body.ts';
import type { TraceBody, TraceRecord } from '../../runtime/trace/trace.ts';
import { causeChain } from './cause-chain.ts';
import { causePathOf, neighboursOf, nextIndexInPath } from './cause-path.ts';
import { foldChain } from './fold-chain.ts';
import { RecordArray, type RecordList } from './record-list.ts';
import { attemptsOf, describeFailures } from './retry-words.ts';

function listOf(bodies: readonly TraceBody[]): RecordList & { consequencesOf(seq: number): readonly number[] } {
  const records = bodies.map((body, i): TraceRecord => ({ seq: i + 1, t: i, ...body }));
  return Object.assign(new RecordArray(records), {
    consequencesOf: (seq: number) =>
      records.flatMap((record, i) => ('cause' in record && record.cause === seq ? [i] : [])),
  });
}

/** An event from outside passes through three actors, with an unrelated event in between. */
const list = listOf([
  { kind: 'spawn', actor: 'a' },
  eventBody('outside', 'a', 'files.changed'),
  eventBody('outside', 'a', 'status.asked'),
  eventBody('a', 'b', 'config.changed', 2),
  eventBody('a', 'outside', 'status.told', 3),
  eventBody('b', 'c', 'epoch.start', 4),
  eventBody('b', 'd', 'epoch.note', 4),
  eventBody('c', 'b', 'epoch.live', 6),
]);

describe('the path of causes and effects of a record', () => {
  test('consists of its nearest cause and its direct effects by default', () => {
    expect(neighboursOf(list, 3)).toEqual({ indexes: [1, 3, 5, 6], root: 1, isTruncated: false });
  });

  test('contains all causes and effects on request, without unrelated records', () => {
    expect(causePathOf(list, 5)).toEqual({ indexes: [1, 3, 5, 7], root: 1, isTruncated: false });
    expect(causePathOf(list, 1)?.indexes).toEqual([1, 3, 5, 6, 7]);
  });

  test('can be visited in order, up to both ends', () => {
    const path = causePathOf(list, 5)!;
    expect(nextIndexInPath(path, 5, -1)).toBe(3);
    expect(nextIndexInPath(path, 5, 1)).toBe(7);
    expect(nextIndexInPath(path, 7, 1)).toBeUndefined();
    // The index need not be in the path.
    expect(nextIndexInPath(path, 4, -1)).toBe(3);
  });
});

test('triesOf describes each attempt by its failure, its number and the delay before the next attempt', () => {
  const tries = Array.from({ length: 11 }, (_, i): TraceBody[] => {
    const firstSeq = i * 4;
    return [
      eventBody('supervisor', `epoch-${i}`, 'restart.decided', i === 0 ? 1 : firstSeq),
      {
        ...eventBody(`epoch-${i}`, 'supervisor', 'epoch.failed', firstSeq + 1),
        event: { type: 'epoch.failed', reason: 'signal SIGKILL', signal: 'SIGKILL', during: 'initializing' },
      } as TraceBody,
      {
        kind: 'timer-started',
        actor: 'supervisor',
        timer: 'backoff',
        state: 'waiting',
        ms: 1_000 * 2 ** i,
        cause: firstSeq + 2,
      },
      { kind: 'timer', actor: 'supervisor', timer: 'backoff' },
    ];
  }).flat();
  const all = listOf([...tries, eventBody('supervisor', 'agent', 'gave.up', tries.length)]);
  const repeated = foldChain(causeChain(all, tries.length).links).find(({ times }) => times > 1)!;
  expect(describeFailures(repeated)).toBe('SIGKILL while initializing');
  const labels = attemptsOf(repeated, (ms) => `${ms / 1_000} s`).map((one) => one.words);
  expect(labels[0]).toBe(`attempt ${repeated.times} of ${repeated.times}`);
  expect(labels[1]).toMatch(/^attempt \d+ of \d+, next in \d+ s$/);
});
