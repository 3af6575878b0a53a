import type { TraceBody } from '../trace.ts';

/** What a trace tells of an event without payload. */
export function eventBody(from: string, to: string, type: string, cause?: number): TraceBody {
  return { kind: 'event', from, to, event: { type }, ...(cause !== undefined && { cause }) };
}
