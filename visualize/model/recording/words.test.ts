import { expect, test } from 'vitest';
import type { TraceRecord } from '../../../src/runtime/trace/trace.ts';
import {
  clockText,
  durationText,
  eventText,
  recordText,
  regionsOf,
  stateText,
  wallClockText,
  wallClockTicks,
} from './words.ts';

test.each([
  [0, '0 ms'],
  [0.4, '0.4 ms'],
  [850, '850 ms'],
  [12_340, '12.3 s'],
  [59_949, '59.9 s'],
  [59_960, '1 min 00 s'],
  [125_000, '2 min 05 s'],
  [3_599_600, '1 h 00 min'],
  [11_520_000, '3 h 12 min'],
  [-1_000, '−1.0 s'],
])('a duration of %d ms is formatted as %s', (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

test('clock times have a precision of 1 ms', () => {
  expect(clockText(12_345.9)).toBe('0:12.345');
  expect(clockText(3_723_004)).toBe('1:02:03.004');
});

test('the wall clock has a date on days other than the first, and axis ticks have one where a day begins', () => {
  const hour = 3_600_000;
  const start = new Date(2026, 11, 30, 22, 15, 30, 120).toISOString();
  expect(wallClockText(start, 0)).toBe('22:15:30.120');
  expect(wallClockText(start, 2 * hour)).toBe('Dec 31 00:15:30.120');
  expect(wallClockText(start, 26 * hour)).toBe('Jan 1 2027 00:15:30.120');
  expect(wallClockText('garbage', 0)).toBe('');
  expect(wallClockTicks(start, [0, 2 * hour, 14 * hour, 26 * hour], hour)).toEqual([
    '22:15:30',
    'Dec 31 00:15',
    '12:15:30',
    'Jan 1 2027 00:15',
  ]);
  expect(wallClockTicks(start, [0, 10], 10)).toEqual(['22:15:30.120', '22:15:30.130']);
});

test('the text of a state contains the innermost names, one per region', () => {
  expect(stateText('running.starting.beside the serving epoch')).toBe('beside the serving epoch');
  expect(stateText('pushing.requests.none | pushing.contexts.idle')).toBe('none, idle');
  expect(regionsOf('')).toEqual([]);
});

test.each([
  [{ kind: 'event', from: 'a', to: 'b', event: { type: 'config.changed' } }, 'a → b: config.changed'],
  [{ kind: 'event', from: 'a/b', to: 'a', event: { type: 'xstate.done.actor.b' } }, 'a/b → a: b done'],
  [{ kind: 'spawn', actor: 'epoch-1', parent: 'supervisor', machine: 'epoch' }, 'supervisor started epoch-1'],
  [{ kind: 'spawn', actor: 'agent', machine: 'agent' }, 'agent: started'],
  [{ kind: 'transition', actor: 'b', from: 'x.settled', to: 'x.deciding', on: 'e' }, 'b: settled → deciding'],
  [{ kind: 'step', actor: 'b', on: 'xstate.after.backoff.supervisor.running' }, 'b: no state change, on timer backoff'],
  [{ kind: 'timer-started', actor: 'b', timer: 'backoff', state: 'x', ms: 200 }, 'b: timer backoff started: 200 ms'],
  [{ kind: 'stop', actor: 'b', status: 'error', error: 'boom' }, 'b: failed: boom'],
])('the text of the record %j is: %s', (body, text) => {
  expect(recordText({ seq: 1, t: 0, ...body } as TraceRecord)).toBe(text);
});

test('internal events of XState have readable names', () => {
  expect(eventText('xstate.done.actor.prepare')).toBe('prepare done');
  expect(eventText('xstate.error.actor.prepare')).toBe('prepare failed');
  expect(eventText('xstate.init')).toBe('start');
  expect(eventText('config.changed')).toBe('config.changed');
});
