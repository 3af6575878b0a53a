import type { AnyStateMachine } from 'xstate';
import { replay } from '../../src/debugger/replay/replay.ts';
import { formatReplay } from '../../src/debugger/replay/report-text.ts';
import { type TraceHeader, type TraceRecord, traceVersion } from '../../src/runtime/trace.ts';

/** Replays what a world recorded. @returns what is different, in words; empty when nothing is. */
export function replayDifference(records: readonly TraceRecord[], ...machines: AnyStateMachine[]): string {
  const header: TraceHeader = {
    kind: 'header',
    version: traceVersion,
    program: 'test',
    pid: 1,
    startedAt: '2026-11-21T00:00:00.000Z',
    level: 'full',
    machines: [],
  };
  // As it is when it comes from a file.
  const report = replay(header, JSON.parse(JSON.stringify(records)) as TraceRecord[], machines);
  return report.difference === undefined ? '' : formatReplay(report);
}
