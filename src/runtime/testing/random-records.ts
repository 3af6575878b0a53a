/** Any trace: actors that come, change and go, in no order that a machine would have. */
import fc from 'fast-check';
import type { ContextChange, TraceBody, TraceHeader, TraceRecord } from '../trace.ts';

export const header: TraceHeader = {
  kind: 'header',
  version: 2,
  program: 'test',
  pid: 1,
  startedAt: '2026-01-02T03:04:05.000Z',
  level: 'standard',
  machines: [],
};

const actor = fc.constantFrom('agent', 'supervisor', 'epoch-0', 'epoch-1', 'epoch-1/process');
const state = fc.constantFrom('idle', 'running', 'running.deciding', 'a.x | b.y', 'a.z | b.y', '');
const timer = fc.constantFrom('backoff', 'healthy');
const value = fc.oneof(fc.integer(), fc.string(), fc.constant(null), fc.array(fc.integer(), { maxLength: 3 }));
const change: fc.Arbitrary<ContextChange[]> = fc.array(
  fc.oneof(
    fc.record({ path: fc.constantFrom('', '/a', '/a/b', '/c~1d'), value }),
    fc.record({ path: fc.constantFrom('/a', '/a/b', '/c~1d') }),
  ),
  { maxLength: 3 },
);

const body: fc.Arbitrary<TraceBody> = fc.oneof(
  fc.record({ kind: fc.constant('spawn' as const), actor, parent: actor, machine: fc.constant('m') }),
  fc.record({ kind: fc.constant('transition' as const), actor, from: state, to: state, on: fc.constant('e'), change }),
  fc.record({ kind: fc.constant('step' as const), actor, on: fc.constant('e'), change }),
  fc.record({ kind: fc.constant('timer-started' as const), actor, timer, state, ms: fc.nat(1_000) }),
  fc.record({ kind: fc.constant('timer' as const), actor, timer }),
  fc.record({ kind: fc.constant('stop' as const), actor, status: fc.constant('done' as const) }),
  fc.record({ kind: fc.constant('effect' as const), actor, effect: fc.constant('notify') }),
  fc.record({ kind: fc.constant('log' as const), actor, level: fc.constant('info' as const), text: fc.string() }),
);

/** Records that are numbered from 1. */
export function recordsOf(bodies: readonly TraceBody[]): TraceRecord[] {
  return bodies.map((each, index) => ({ seq: index + 1, t: index, ...each }));
}

/** The records of a trace from its beginning. */
export const randomRecords = fc.array(body, { minLength: 1, maxLength: 60 }).map(recordsOf);
