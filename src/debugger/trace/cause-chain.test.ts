import { describe, expect, test } from 'vitest';
import { eventBody } from '../../../test/fixtures/event-body.ts';
import type { TraceBody, TraceRecord } from '../../runtime/trace/trace.ts';
import { causeChain, spawnOf } from './cause-chain.ts';
import { RecordArray, type RecordList } from './record-list.ts';

function listOf(bodies: readonly TraceBody[], firstSeq = 1): RecordList {
  return new RecordArray(bodies.map((body, i): TraceRecord => ({ seq: firstSeq + i, t: i, ...body })));
}

/** `how seq` of each link, and the origin. */
function explainCause(list: RecordList, seq: number): string[] {
  const { links, origin } = causeChain(list, list.indexOf(seq)!);
  return [...links.map(({ how, record }) => `${how} ${record.seq}`), origin];
}

const run = listOf([
  /* 1 */ { kind: 'spawn', actor: 'supervisor', machine: 'supervisor' },
  /* 2 */ { kind: 'transition', actor: 'supervisor', from: '', to: 'idle', on: 'xstate.init', cause: 1 },
  /* 3 */ eventBody('outside', 'supervisor', 'supervisor.start'),
  /* 4 */ { kind: 'spawn', actor: 'epoch-0', parent: 'supervisor', machine: 'epoch', cause: 3 },
  /* 5 */ { kind: 'spawn', actor: 'epoch-0/process', parent: 'epoch-0', cause: 4 },
  /* 6 */ eventBody('epoch-0/process', 'epoch-0', 'process.spawned'),
  /* 7 */ { kind: 'timer-started', actor: 'epoch-0', timer: 'liveLimit', state: 'starting', ms: 100, cause: 6 },
  /* 8 */ { kind: 'timer-started', actor: 'supervisor', timer: 'liveLimit', state: 'x', ms: 100, cause: 3 },
  /* 9 */ { kind: 'timer', actor: 'epoch-0', timer: 'liveLimit' },
  /* 10 */ eventBody('epoch-0', 'epoch-0/process', 'process.kill', 9),
  /* 11 */ { kind: 'transition', actor: 'epoch-0', from: 'starting', to: 'killing', on: 'after', cause: 9 },
  /* 12 */ eventBody('epoch-0/process', 'epoch-0', 'process.exited'),
  /* 13 */ { kind: 'log', actor: 'epoch-0/process', level: 'info', text: 'bye' },
  /* 14 */ { kind: 'transition', actor: 'epoch-0', from: 'killing', to: 'gone', on: 'process.exited', cause: 12 },
  /* 15 */ { kind: 'stop', actor: 'epoch-0', status: 'done' },
  /* 16 */ { kind: 'stop', actor: 'epoch-0/process', status: 'stopped' },
]);

describe('the cause chain of a record', () => {
  test('consists of the events that its chart reacted to, back to an event from outside', () => {
    expect(explainCause(run, 4)).toEqual(['cause 3', 'outside']);
    expect(explainCause(run, 2)).toEqual(['cause 1', 'start']);
  });

  test('leads from a timer to the record that started it, not to another timer of the same name', () => {
    expect(explainCause(run, 11)).toEqual([
      'cause 9',
      'timer-started 7',
      'cause 6',
      'spawned 5',
      'cause 4',
      'cause 3',
      'outside',
    ]);
  });

  test("leads from an action of an effect to the effect's last received event, or to its spawn", () => {
    expect(explainCause(run, 6)).toEqual(['spawned 5', 'cause 4', 'cause 3', 'outside']);
    expect(explainCause(run, 12).slice(0, 3)).toEqual(['received 10', 'cause 9', 'timer-started 7']);
    expect(explainCause(run, 13)[0]).toBe('received 10');
  });

  test('leads from an action of an effect to the last transition of its owner, if that is later than the last event received', () => {
    const superseded = listOf([
      /* 1 */ { kind: 'spawn', actor: 'epoch-0', parent: 'supervisor', machine: 'epoch' },
      /* 2 */ { kind: 'spawn', actor: 'epoch-0/process', parent: 'epoch-0', cause: 1 },
      /* 3 */ { kind: 'transition', actor: 'epoch-0', from: '', to: 'live', on: 'xstate.init', cause: 1 },
      /* 4 */ eventBody('outside', 'supervisor', 'config.changed'),
      /* 5 */ eventBody('supervisor', 'epoch-0', 'epoch.supersede', 4),
      /* 6 */ { kind: 'transition', actor: 'epoch-0', from: 'live', to: 'draining', on: 'epoch.supersede', cause: 5 },
      /* 7 */ { kind: 'transition', actor: 'epoch-1', from: 'x', to: 'y', on: 'epoch.supersede', cause: 5 },
      /* 8 */ eventBody('epoch-0/process', 'epoch-0', 'process.exited'),
    ]);
    expect(explainCause(superseded, 8)).toEqual(['owner-state 6', 'cause 5', 'cause 4', 'outside']);
  });

  test('leads from an action of an effect to a later event that its owner received from another actor', () => {
    const pushedRecords = listOf([
      /* 1 */ { kind: 'spawn', actor: 'connection', machine: 'connection' },
      /* 2 */ { kind: 'spawn', actor: 'connection/stream', parent: 'connection', cause: 1 },
      /* 3 */ eventBody('connection', 'connection/stream', 'stream.order', 1),
      /* 4 */ eventBody('outside', 'connection', 'connection.push'),
      /* 5 */ eventBody('connection/stream', 'connection', 'watch.changed'),
      /* 6 */ eventBody('connection/stream', 'connection', 'response.sent'),
      /* 7 */ eventBody('connection', 'connection/stream', 'stream.order', 6),
      /* 8 */ eventBody('connection/stream', 'connection', 'response.sent'),
      /* 9 */ eventBody('connections', 'connection', 'connection.push'),
      /* 10 */ { kind: 'transition', actor: 'connection', from: 'idle', to: 'over', on: 'connection.push', cause: 9 },
      /* 11 */ eventBody('connection/stream', 'connection', 'stream.closed'),
    ]);
    expect(explainCause(pushedRecords, 5)).toEqual(['owner-received 4', 'outside']);
    expect(explainCause(pushedRecords, 6)).toEqual(['owner-received 4', 'outside']);
    expect(explainCause(pushedRecords, 8).slice(0, 2)).toEqual(['received 7', 'cause 6']);
    expect(explainCause(pushedRecords, 11).slice(0, 2)).toEqual(['owner-state 10', 'cause 9']);
  });

  test('leads from the end of an actor to its last transition, or to that of the parent that stopped it', () => {
    expect(explainCause(run, 15).slice(0, 2)).toEqual(['ended-by 14', 'cause 12']);
    expect(explainCause(run, 16).slice(0, 2)).toEqual(['ended-by 14', 'cause 12']);
  });

  test("leads from the end of an effect that completed to the effect's last received event, or to its spawn", () => {
    const list = listOf([
      { kind: 'spawn', actor: 'a', machine: 'a' },
      { kind: 'spawn', actor: 'a/claim', parent: 'a', cause: 1 },
      { kind: 'stop', actor: 'a/claim', status: 'done' },
    ]);
    expect(explainCause(list, 3)).toEqual(['spawned 2', 'cause 1', 'start']);
  });

  test('ends as lost if the next cause is not in the trace', () => {
    const rotated = listOf([eventBody('a', 'b', 'b.greet', 99), eventBody('b/effect', 'b', 'b.heard')], 100);
    expect(explainCause(rotated, 100)).toEqual(['lost']);
    expect(explainCause(rotated, 101)).toEqual(['owner-received 100', 'lost']);
    expect(explainCause(listOf([{ kind: 'timer', actor: 'a', timer: 't' }]), 1)).toEqual(['lost']);
    expect(explainCause(listOf([{ kind: 'stop', actor: 'a', status: 'stopped' }]), 1)).toEqual(['lost']);
    expect(causeChain(rotated, 7)).toEqual({ links: [], origin: 'lost' });
  });

  test('ends at a record that names itself or a later record as its cause', () => {
    const mad = listOf([
      eventBody('a', 'b', 'b.one', 2),
      eventBody('b', 'a', 'a.two', 1),
      eventBody('a', 'b', 'b.three', 3),
    ]);
    expect(explainCause(mad, 1)).toEqual(['lost']);
    expect(explainCause(mad, 2)).toEqual(['cause 1', 'lost']);
    expect(explainCause(mad, 3)).toEqual(['lost']);
  });

  test('has a maximum length', () => {
    const pingPong = listOf(
      Array.from({ length: 6_000 }, (_, i) => eventBody('a', 'b', 'b.ping', i === 0 ? undefined : i)),
    );
    const { links, origin } = causeChain(pingPong, 5_999);
    expect({ length: links.length, origin }).toEqual({ length: 5_000, origin: 'long' });
  });
});

test('spawnOf returns the latest spawn of an effect', () => {
  const list = listOf([
    { kind: 'spawn', actor: 'a/probe', parent: 'a' },
    { kind: 'stop', actor: 'a/probe', status: 'done' },
    { kind: 'spawn', actor: 'a/probe', parent: 'a' },
    eventBody('a/probe', 'a', 'probe.passed'),
    { kind: 'spawn', actor: 'a/probe', parent: 'a' },
  ]);
  expect(spawnOf(list, 'a/probe', 3)?.record.seq).toBe(3);
  expect(spawnOf(list, 'nobody', 3)).toBeUndefined();
});
