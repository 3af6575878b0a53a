import { describe, expect, test } from 'vitest';
import type { TraceBody, TraceRecord } from '../../runtime/trace/trace.ts';
import { formatRecord } from './print-trace.ts';

const record = (body: TraceBody): TraceRecord => ({ seq: 7, t: 1234.5, ...body });
/** The line of a record without number and time. */
const textOf = (body: TraceBody): string => formatRecord(record(body)).slice(23);

describe('the line of a record', () => {
  test.each<[string, TraceBody]>([
    [
      'outside → a: spawn (machine greeter) {"port":1}',
      { kind: 'spawn', actor: 'a', machine: 'greeter', input: { port: 1 } },
    ],
    ['a → a/wink: spawn  ← 3', { kind: 'spawn', actor: 'a/wink', parent: 'a', cause: 3 }],
    [
      'outside → a: a.wake {"why":"morning"}',
      { kind: 'event', from: 'outside', to: 'a', event: { type: 'a.wake', why: 'morning' } },
    ],
    ['a → b: b.wake  ← 4', { kind: 'event', from: 'a', to: 'b', event: { type: 'b.wake' }, cause: 4 }],
    [
      'a: timer yawn started: 60 s in [bed.half asleep]  ← 4',
      { kind: 'timer-started', actor: 'a', timer: 'yawn', state: 'bed.half asleep', ms: 60_000, cause: 4 },
    ],
    ['a: timer yawn started: 50 ms', { kind: 'timer-started', actor: 'a', timer: 'yawn', state: '', ms: 50 }],
    ['a: timer yawn elapsed', { kind: 'timer', actor: 'a', timer: 'yawn' }],
    [
      'a: [asleep] → [awake] on timer yawn  (tokens = 9, limit/max removed)  ← 5',
      {
        kind: 'transition',
        actor: 'a',
        from: 'asleep',
        to: 'awake',
        on: 'xstate.after.yawn.a.asleep',
        cause: 5,
        taken: [1],
        change: [{ path: '/tokens', value: 9 }, { path: '/limit/max' }],
      },
    ],
    [
      'a: no state change, on a.poke  (context = {"x":null})',
      { kind: 'step', actor: 'a', on: 'a.poke', change: [{ path: '', value: { x: null } }] },
    ],
    ['a: no state change, on a.poke', { kind: 'step', actor: 'a', on: 'a.poke', taken: [3] }],
    ['a: action waveHand {"times":2}', { kind: 'effect', actor: 'a', effect: 'waveHand', params: { times: 2 } }],
    ['a: error fell asleep', { kind: 'stop', actor: 'a', status: 'error', error: 'fell asleep' }],
    ['a: done {"exitCode":0}', { kind: 'stop', actor: 'a', status: 'done', output: { exitCode: 0 } }],
    ['a/process log │ hello', { kind: 'log', actor: 'a/process', level: 'info', text: 'hello' }],
    ['a/process log (error) │ ouch', { kind: 'log', actor: 'a/process', level: 'error', text: 'ouch' }],
  ])('is %s', (line, body) => {
    expect(textOf(body)).toBe(line);
  });

  test('begins with its number and the milliseconds since the start, or the wall-clock time', () => {
    const timer = record({ kind: 'timer', actor: 'a', timer: 'yawn' });
    expect(formatRecord(timer)).toMatch(/^ {6}7 {6}1234\.500 {2}a: timer/);
    expect(formatRecord(timer, { startedAt: '2026-03-01T03:12:00.000Z' })).toMatch(
      /^ {6}7 2026-03-01T03:12:01\.234Z {2}a: timer/,
    );
    expect(formatRecord(timer, { startedAt: 'at noon' })).toContain('7 1234.500 ms  a: timer');
  });

  test('has a limited length for any payload and change', () => {
    const longText = 'x'.repeat(10_000);
    const change = Array.from({ length: 50 }, (_, i) => ({ path: `/field${i}`, value: longText }));
    expect(textOf({ kind: 'step', actor: 'a', on: 'a.b', change }).length).toBeLessThan(220);
    expect(textOf({ kind: 'event', from: 'a', to: 'b', event: { type: 'a.b', long: longText } }).length).toBeLessThan(
      220,
    );
  });

  test('contains no control characters', () => {
    const text = '\u001b[31mred\u001b[0m\u001b]0;title\u0007\r\nnext\u009b2J';
    expect(textOf({ kind: 'log', actor: 'a', level: 'info', text })).toBe(
      'a log │ \\x1b[31mred\\x1b[0m\\x1b]0;title\\x07\\r\\nnext\\u009b2J',
    );
  });
});
