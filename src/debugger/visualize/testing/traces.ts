/** Small traces for the tests of this folder. */
import { formatTraceLine, type TraceHeader, type TraceRecord, traceVersion } from '../../../runtime/trace.ts';

export const header: TraceHeader = {
  kind: 'header',
  version: traceVersion,
  program: 'pilot-agent',
  pid: 7,
  startedAt: '2026-11-21T00:00:00.000Z',
  level: 'standard',
  machines: [
    {
      id: 'light',
      states: [
        { path: '', type: 'compound', initial: 1 },
        { path: 'red', parent: 0, type: 'atomic' },
        { path: 'green', parent: 0, type: 'atomic' },
      ],
      transitions: [{ source: 1, targets: [2], kind: 'event', on: 'light.changed' }],
    },
  ],
};

export function event(seq: number, type = 'light.changed'): TraceRecord {
  return { kind: 'event', seq, t: seq, from: 'outside', to: 'light', event: { type } };
}

/** A trace of `count` events. */
export function traceText(count: number, first = header): string {
  return formatTraceLine(first) + Array.from({ length: count }, (_, i) => formatTraceLine(event(i + 1))).join('');
}
