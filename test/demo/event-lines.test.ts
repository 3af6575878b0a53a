import { expect, test } from 'vitest';
import type { TraceBody } from '../../src/runtime/trace/trace.ts';
import { headerWith } from '../fixtures/trace-header.ts';
import { eventLines } from './event-lines.ts';

const startedAt = new Date(2026, 0, 2, 12, 1, 2, 345);
const stamp = { seq: 1, t: 1_000 };

function linesOf(...bodies: TraceBody[]): (string | undefined)[] {
  const toText = eventLines('gateway');
  toText(headerWith({ program: 'pilot-agent', startedAt: startedAt.toISOString() }));
  return bodies.map((body) => toText({ ...stamp, ...body }));
}

test('a state change is one line with time, actor, both states and the cause', () => {
  const [line] = linesOf({
    kind: 'transition',
    actor: 'epoch-1',
    from: 'running',
    to: 'over',
    on: 'process.exited',
  });
  expect(line).toMatch(/^12:01:03\.345 {2}gateway +epoch-1 +running → over +\(process\.exited\)$/);
});

test('a new actor has a line with its initial state', () => {
  const [line] = linesOf({ kind: 'transition', actor: 'epoch-1', from: '', to: 'preparing', on: 'xstate.init' });
  expect(line).toMatch(/epoch-1 +starts → preparing +\(start\)$/);
});

test('a change of parallel regions lists only the changed regions', () => {
  const [line] = linesOf({
    kind: 'transition',
    actor: 'push',
    from: 'requests.none | contexts.free',
    to: 'requests.none | contexts.building',
    on: 'push.request',
  });
  expect(line).toContain(' contexts.free → contexts.building ');
  expect(line).not.toContain('requests');
});

test('a record without a state change has no line', () => {
  expect(linesOf({ kind: 'event', from: 'a', to: 'b', event: { type: 'epoch.live' } })).toEqual([undefined]);
});
