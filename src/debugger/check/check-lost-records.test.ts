import { describe, expect, test } from 'vitest';
import {
  connection,
  deviationsOf,
  restart,
  restartFrom,
  spawnStep,
  spawnsDiagram,
  trace,
} from '../../../test/fixtures/given-traces.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { checkTrace, TraceChecker } from './check.ts';

describe('the check of a trace that begins in the middle', () => {
  test('assigns the end of an actor to the parent that the header names', () => {
    const livingActor = {
      actor: 'epoch-0',
      parent: 'supervisor',
      machine: 'epoch',
      state: 'x',
      spawned: 1,
      spawnedAt: 0,
    };
    const endRecords: TraceRecord[] = [{ seq: 9, t: 1, kind: 'stop', actor: 'epoch-0', status: 'done' }];
    expect(checkTrace([restart], endRecords, { actors: [livingActor] }).counts.accepted).toBe(1);
    const unknownParentActor = { ...livingActor, parent: 'stranger' };
    const { counts } = checkTrace([restart], endRecords, { actors: [unknownParentActor] });
    expect(counts).toMatchObject({ accepted: 0, ignored: { unknownActor: 1 } });
  });

  test('accepts a message that can belong to activations of several numbers until only one is possible', () => {
    const requestOf = (n: number): string => `ads-connection-${n}/stream>ads-connection-${n} request.received`;
    const responseOf = (n: number): string => `ads-connection-${n}>ads-connection-${n}/stream response.sent`;
    const lateTrace = (...steps: string[]): TraceRecord[] =>
      trace(...steps).map((record) => ({ ...record, seq: record.seq + 100 }));
    expect(
      deviationsOf([connection], lateTrace(responseOf(1), requestOf(2), requestOf(1), responseOf(2), responseOf(1))),
    ).toEqual([]);
    expect(deviationsOf([connection], lateTrace(responseOf(1), requestOf(2), requestOf(1), requestOf(2)))).toEqual([
      'out-of-order 104: request.received (connection.mmd:8)',
    ]);
    expect(
      deviationsOf(
        [connection],
        lateTrace(responseOf(1), 'ads-server>ads-connection-9 connection.opened', responseOf(9)),
      ),
    ).toEqual(['out-of-order 103: response.sent (connection.mmd:7)']);
  });

  test('continues from the restored state of a checker', () => {
    const lateRecords = trace(...restartFrom(0), ...restartFrom(1), ...restartFrom(2)).slice(5);
    const checker = new TraceChecker([restart]);
    for (const record of lateRecords.slice(0, 4)) checker.feed(record);
    const restore = checker.save();
    for (const record of lateRecords.slice(8)) checker.feed(record);
    restore();
    for (const record of lateRecords.slice(4)) checker.feed(record);
    expect(checker.report()).toEqual(checkTrace([restart], lateRecords));
  });
});

describe('the check of a trace with lost records', () => {
  const wholeTrace = trace(spawnStep(0), ...restartFrom(0), ...restartFrom(1), ...restartFrom(2));

  test('accepts a trace whose beginning is missing', () => {
    for (let from = 1; from < wholeTrace.length; from++) {
      const report = checkTrace([spawnsDiagram, restart], wholeTrace.slice(from));
      expect(report.departures).toEqual([]);
      expect(report.counts.lost).toBe(from);
    }
  });

  test('accepts a trace after a gap', () => {
    for (let from = 1; from < wholeTrace.length; from++) {
      for (let to = from + 1; to < wholeTrace.length; to++) {
        expect(deviationsOf([spawnsDiagram, restart], wholeTrace.toSpliced(from, to - from))).toEqual([]);
      }
    }
  });

  test('still reports deviations after the first record', () => {
    const lateRecords = wholeTrace.slice(4).toSpliced(7, 1);
    expect(
      deviationsOf(
        [spawnsDiagram, restart],
        lateRecords.map((record, i) => ({ ...record, seq: i + 5 })),
      ),
    ).toHaveLength(1);
  });
});
