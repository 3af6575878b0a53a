import { expect, test } from 'vitest';
import type { ActorSnapshot } from '../../src/runtime/trace/trace.ts';
import { type ActorGroup, type ActorRow, actorRows, filterGroup, isGroup } from './actor-tree.ts';

const actor = (name: string, more: Partial<ActorSnapshot> = {}): ActorSnapshot => ({
  actor: name,
  machine: name.replace(/-\d+b?$/, ''),
  state: 'live',
  spawned: 1,
  spawnedAt: 0,
  ...more,
});
const effect = (name: string, parent: string): ActorSnapshot => ({
  actor: name,
  parent,
  state: '',
  spawned: 1,
  spawnedAt: 0,
});
const rowsOf = (...actors: ActorSnapshot[]): ActorRow[] => actorRows(new Map(actors.map((each) => [each.actor, each])));
const names = (rows: ActorRow[]): string[] =>
  rows.map((row) => `${' '.repeat(row.depth)}${isGroup(row) ? `${row.name} ×${row.actors.length}` : row.actor.actor}`);

test('charts stand below their parents in the order of their spawns, effects are marks of whom they work for', () => {
  const rows = rowsOf(
    actor('agent'),
    actor('status', { parent: 'agent' }),
    actor('supervisor', { parent: 'agent' }),
    effect('agent/signals', 'agent'),
    actor('epoch-0', { parent: 'supervisor' }),
    effect('epoch-0/process', 'epoch-0'),
  );
  expect(names(rows)).toEqual(['agent', ' status', ' supervisor', '  epoch-0']);
  expect(rows.map((row) => (isGroup(row) ? [] : row.effects))).toEqual([['signals'], [], [], ['process']]);
});

test('a chart whose parent is gone, and an effect without one, stand at the top', () => {
  expect(names(rowsOf(actor('epoch-0', { parent: 'supervisor' }), effect('demo', 'nobody')))).toEqual([
    'epoch-0',
    'demo',
  ]);
});

test('many of a kind are one group with counts by state, a few are not', () => {
  const many = Array.from({ length: 300 }, (_, i) =>
    actor(`ads-connection-${i}`, { state: i % 3 === 0 ? 'streaming.waiting' : 'streaming.caught up' }),
  );
  const rows = rowsOf(actor('discovery'), ...many, actor('push'));
  expect(names(rows)).toEqual(['discovery', 'ads-connection ×300', 'push']);
  expect((rows[1] as ActorGroup).counts).toEqual([
    { state: 'streaming.caught up', n: 200 },
    { state: 'streaming.waiting', n: 100 },
  ]);
  expect(names(rowsOf(actor('epoch-0'), actor('epoch-1'), actor('epoch-0b')))).toEqual([
    'epoch-0',
    'epoch-1',
    'epoch-0b',
  ]);
});

test('a group is filtered by number and by state', () => {
  const group = rowsOf(
    ...Array.from({ length: 20 }, (_, i) => actor(`ads-connection-${i}`, { state: i === 5 ? 'closing' : 'open' })),
  )[0] as ActorGroup;
  expect(filterGroup(group, '17').map((each) => each.actor)).toEqual(['ads-connection-17']);
  expect(filterGroup(group, ' Closing ').map((each) => each.actor)).toEqual(['ads-connection-5']);
  expect(filterGroup(group, '')).toHaveLength(20);
});
