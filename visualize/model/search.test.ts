import { expect, test } from 'vitest';
import { RecordArray } from '../../src/debugger/trace/record-list.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { foundText, matches, parseQuery, TraceSearch } from './search.ts';

const event: TraceRecord = {
  seq: 7,
  t: 1,
  kind: 'event',
  from: 'cert-watcher',
  to: 'supervisor',
  event: { type: 'config.changed', digest: 'ab12', path: '/etc/certs/tls.crt' },
};
const step: TraceRecord = {
  seq: 8,
  t: 2,
  kind: 'transition',
  actor: 'supervisor',
  from: 'running.settled',
  to: 'running.deciding',
  on: 'config.changed',
};
const log: TraceRecord = {
  seq: 77,
  t: 3,
  kind: 'log',
  actor: 'epoch-0/process',
  level: 'error',
  text: 'Listener is not ready',
};
const startRecord: TraceRecord = {
  seq: 78,
  t: 3,
  kind: 'timer-started',
  actor: 'supervisor',
  timer: 'backoff',
  state: 'running.backing off',
  ms: 5,
};

const matchingSeqs = (query: string): number[] =>
  [event, step, log, startRecord].filter((record) => matches(parseQuery(query), record)).map(({ seq }) => seq);

test.each([
  ['config.changed', [7, 8]],
  ['tls.crt', [7]],
  ['CONFIG.Changed', [7, 8]],
  ['actor:supervisor', [7, 8, 78]],
  ['actor:supervisor config.changed', [7, 8]],
  ['kind:log error', [77]],
  ['kind:timer', []],
  ['kind:timer-started', [78]],
  ['"not ready"', [77]],
  ['"not ready', [77]],
  ['ready not', [77]],
  ['actor:supervisor -kind:event', [8, 78]],
  ['from:cert-watcher', [7]],
  ['state:"backing off"', [78]],
  ['state:deciding', [8]],
  ['seq:7', [7]],
  ['timer:back', [78]],
  ['event:config', [7, 8]],
  ['digest:ab12', []],
])('the query %s finds %j', (query, seqs) => {
  expect(matchingSeqs(query)).toEqual(seqs);
});

test('an empty query has no terms, and a field without a value is searched as text', () => {
  expect(parseQuery('  ').terms).toEqual([]);
  expect(parseQuery('actor:').terms).toEqual([{ field: undefined, text: 'actor:', isNegated: false }]);
});

test('an interrupted search continues where it stopped, and includes new records', () => {
  const records = Array.from(
    { length: 5_000 },
    (_, i): TraceRecord => ({ ...log, seq: i + 1, text: i % 10 === 0 ? 'bad' : 'good' }),
  );
  const firstRecords = new RecordArray(records.slice(0, 3_000));
  const search = new TraceSearch(parseQuery('bad'));
  expect(search.advance(firstRecords, () => false)).toBe(false);
  const reachedIndex = search.searchedCount;
  expect(reachedIndex).toBeLessThan(3_000);
  let rounds = 1;
  while (!search.advance(firstRecords, () => false)) rounds++;
  expect(rounds).toBeGreaterThan(2);
  expect(search.matchIndexes).toHaveLength(300);
  expect(search.advance(new RecordArray(records), () => true)).toBe(true);
  expect(search.matchIndexes).toEqual(records.flatMap(({ seq }) => ((seq - 1) % 10 === 0 ? [seq - 1] : [])));
});

test('the matching part of the payload is shown unless the sentence already contains it', () => {
  const sentence = 'cert-watcher → supervisor: config.changed';
  const matchedText = (text: string) => foundText(parseQuery(text), event, sentence);
  expect(matchedText('supervisor')).toBeUndefined();
  expect(matchedText('kind:event')).toBeUndefined();
  expect(matchedText('-tls.crt')).toBeUndefined();
  expect(matchedText('TLS.crt')).toMatchObject({
    matchedText: 'tls.crt',
    textBefore: expect.stringMatching(/^….*\/etc\/certs\/$/),
  });
  expect(matchedText('supervisor ab12')?.matchedText).toBe('ab12');
});
