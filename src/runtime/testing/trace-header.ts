import { type TraceHeader, traceVersion } from '../trace.ts';

/** The header of a trace that a test writes. */
export function headerWith(fields: Partial<TraceHeader> = {}): TraceHeader {
  return {
    kind: 'header',
    version: traceVersion,
    program: 'test',
    pid: 1,
    startedAt: '2026-01-01T00:00:00.000Z',
    level: 'standard',
    machines: [],
    ...fields,
  };
}
