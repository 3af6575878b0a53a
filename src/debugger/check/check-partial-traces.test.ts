/**
 * Traces that begin in the middle (after a rotation, from a ring buffer) or have a gap, checked against the diagrams of
 * the agent.
 */
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import type { Schedule, ScheduledEvent, Step } from '../../../test/simulation/random-schedule.ts';
import { writeRandomTrace } from '../../../test/simulation/random-search.ts';
import { packageRoot } from '../../runtime/package-root.ts';
import type { TraceHeader, TraceRecord } from '../../runtime/trace/trace.ts';
import { TraceState } from '../../runtime/trace/trace-state.ts';
import { loadDiagrams } from '../diagram/load.ts';
import { checkTrace } from './check.ts';

const diagrams = loadDiagrams(join(packageRoot(), 'machines/agent/sequences'));
let records: TraceRecord[];

/** Hot restarts, a crash, a rejected configuration and a drain, in virtual time. */
beforeAll(() => {
  records = [];
  const stepAfter = (ms: number, scheduledEvent: ScheduledEvent): Step => ({ gap: { ms }, scheduledEvent });
  const schedule: Schedule = {
    settings: 'short times',
    startConditions: 'in order',
    durationSeed: 0,
    ending: 'in peace',
    steps: [
      stepAfter(5_000, { kind: 'certificate' }),
      stepAfter(20_000, { kind: 'crash', target: 'serving' }),
      stepAfter(15_000, { kind: 'bootstrap refused' }),
      stepAfter(1, { kind: 'certificate' }),
      stepAfter(20_000, { kind: 'SIGHUP' }),
    ],
  };
  writeRandomTrace(schedule, {
    write: (line) => {
      if (line.kind !== 'header') records.push(line);
    },
    flush: () => {},
    close: () => {},
  });
});

function firstDeviation(trace: readonly TraceRecord[], header: Pick<TraceHeader, 'actors'> = {}): string | undefined {
  const [first] = checkTrace(diagrams, trace, header).departures;
  return first === undefined ? undefined : `${first.kind} ${first.message.seq} ${first.message.type}`;
}

test('the check finds no deviation in a correct trace that begins at any of its records', () => {
  expect(records.length).toBeGreaterThan(200);
  const state = TraceState.of({});
  for (const [k, record] of records.entries()) {
    if (k % 5 === 0) expect(firstDeviation(records.slice(k), { actors: [...state.actors.values()] })).toBeUndefined();
    state.apply(record);
  }
});

test('the check finds no deviation in a correct trace that lacks any range of records', () => {
  for (let k = 1; k < records.length; k += 13) {
    for (const length of [1, 7, 40]) {
      expect(firstDeviation(records.toSpliced(k, length))).toBeUndefined();
    }
  }
});

test('the check finds a deviation in a trace that begins shortly before it', () => {
  const at = records.findIndex(({ kind }, i) => {
    const record = records[i]!;
    return i > 120 && kind === 'event' && record.kind === 'event' && record.event.type === 'epoch.live';
  });
  const withoutRecord = records.toSpliced(at, 1).map((record, i) => ({ ...record, seq: i + 1 }));
  expect(firstDeviation(withoutRecord)).toBeDefined();
  expect(firstDeviation(withoutRecord.slice(at - 60))).toBeDefined();
});
