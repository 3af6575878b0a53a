import type { AnyStateMachine } from 'xstate';
import { replay } from '../../src/debugger/replay/replay.ts';
import { formatReplay } from '../../src/debugger/replay/replay-report-text.ts';
import type { TraceRecord } from '../../src/runtime/trace/trace.ts';
import { headerWith } from '../fixtures/trace-header.ts';

/** Replays the records of a world. @returns differences as text; empty if none exist */
export function replayDifference(records: readonly TraceRecord[], ...machines: AnyStateMachine[]): string {
  const header = headerWith({ level: 'full' });
  // Serialized as in a file.
  const report = replay(header, JSON.parse(JSON.stringify(records)) as TraceRecord[], machines);
  return report.difference === undefined ? '' : formatReplay(report);
}
