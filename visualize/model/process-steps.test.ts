import { expect, test } from 'vitest';
import type { ProcessRule } from '../../machines/timeline.ts';
import type { TraceBody, TraceRecord } from '../../src/runtime/trace/trace.ts';
import { headerWith } from '../../test/fixtures/trace-header.ts';
import { Lanes } from './recording/lanes.ts';

const process: ProcessRule = {
  title: { event: 'client.named', text: 'roll-out to {name}' },
  steps: [
    { event: 'wait.began', step: 'clusters', text: 'waiting for {clusters}' },
    { event: 'response.sent', when: { kind: 'endpoints' }, during: ['clusters'], step: 'endpoints' },
    { event: 'wait.ended', during: ['clusters', 'endpoints'], step: 'routes' },
    { event: 'all.done' },
  ],
};

const header = headerWith({
  program: 'server',
  machines: [
    {
      id: 'connection',
      states: [{ path: 'open', type: 'atomic' }],
      transitions: [],
      timeline: { lane: { count: 'connections' }, process },
    } as never,
  ],
});

/** Appends the records, the i-th at i × 10 ms. */
function lanesOf(bodies: readonly TraceBody[]): Lanes {
  const lanes = new Lanes(header);
  bodies.forEach((body, i) => {
    lanes.addRecord({ seq: i + 1, t: i * 10, ...body } as TraceRecord, i);
  });
  return lanes;
}

const spawn = (actor: string): TraceBody => ({ kind: 'spawn', actor, machine: 'connection' });
const to = (actor: string, type: string, fields: object = {}): TraceBody => ({
  kind: 'event',
  from: `${actor}/stream`,
  to: actor,
  event: { type, ...fields },
});
const stepsOf = (lanes: Lanes, name: string): unknown[] =>
  lanes.lanes
    .find((lane) => lane.name === name)!
    .spans.map(({ phase, from, to: end, text }) => [phase, from, end, text]);

test('an actor has a lane for its process from the first step, with a bar for each step and its reason to wait', () => {
  const lanes = lanesOf([
    spawn('connection-1'),
    spawn('connection-2'),
    to('connection-1', 'client.named', { name: 'web' }),
    to('connection-1', 'response.sent', { kind: 'endpoints' }),
    to('connection-1', 'wait.began', { clusters: ['a', 'b'] }),
    to('connection-1', 'response.sent', { kind: 'routes' }),
    to('connection-1', 'response.sent', { kind: 'endpoints' }),
    to('connection-1', 'wait.ended'),
    to('connection-1', 'all.done'),
  ]);
  expect(lanes.lanes.map(({ name, title }) => [name, title])).toEqual([
    ['connections', 'connections'],
    ['connection-1', 'roll-out to web'],
  ]);
  expect(stepsOf(lanes, 'connection-1')).toEqual([
    ['clusters', 40, 60, 'waiting for a, b'],
    ['endpoints', 60, 70, undefined],
    ['routes', 70, 80, undefined],
  ]);
});

test('a process ends with its actor, and a restarted process has another bar', () => {
  const lanes = lanesOf([
    spawn('connection-1'),
    to('connection-1', 'wait.began', { clusters: ['a'] }),
    to('connection-1', 'all.done'),
    to('connection-1', 'wait.began', { clusters: ['b'] }),
    { kind: 'stop', actor: 'connection-1', status: 'done' },
  ]);
  expect(stepsOf(lanes, 'connection-1')).toEqual([
    ['clusters', 10, 20, 'waiting for a'],
    ['clusters', 30, 40, 'waiting for b'],
  ]);
  expect(lanes.lanes.at(-1)!.title).toBe('connection-1');
});
