import { expect, test } from 'vitest';
import type { ActorSnapshot } from '../../../src/runtime/trace/trace.ts';
import {
  type ActorGroup,
  type ActorRow,
  actorTree,
  filterGroup,
  findActors,
  isGroup,
  maxActorRows,
  maxKindsOfSiblings,
} from './actor-tree.ts';

const actor = (name: string, overrides: Partial<ActorSnapshot> = {}): ActorSnapshot => ({
  actor: name,
  machine: name.replace(/-\d+b?$/, ''),
  state: 'live',
  spawned: 1,
  spawnedAt: 0,
  ...overrides,
});
const effect = (name: string, parent: string): ActorSnapshot => ({
  actor: name,
  parent,
  state: '',
  spawned: 1,
  spawnedAt: 0,
});
const treeOf = (...actors: ActorSnapshot[]) => actorTree(new Map(actors.map((snapshot) => [snapshot.actor, snapshot])));
const rowsOf = (...actors: ActorSnapshot[]): readonly ActorRow[] => treeOf(...actors).rows;
const names = (rows: readonly ActorRow[]): string[] =>
  rows.map((row) => `${' '.repeat(row.depth)}${isGroup(row) ? `${row.name} ×${row.actors.length}` : row.actor.actor}`);

test('charts are below their parents in the order of their spawns, and effects are marks of their owners', () => {
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

test('a chart with an ended parent, and an effect without a parent, are roots of the tree', () => {
  expect(names(rowsOf(actor('epoch-0', { parent: 'supervisor' }), effect('demo', 'nobody')))).toEqual([
    'epoch-0',
    'demo',
  ]);
});

test('many actors of a kind form one group with counts by state, while a few do not', () => {
  const manyActors = Array.from({ length: 300 }, (_, i) =>
    actor(`ads-connection-${i}`, { state: i % 3 === 0 ? 'streaming.waiting' : 'streaming.caught up' }),
  );
  const rows = rowsOf(actor('discovery'), ...manyActors, actor('push'));
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

test('a group of actors is filtered by number and by state', () => {
  const group = rowsOf(
    ...Array.from({ length: 20 }, (_, i) => actor(`ads-connection-${i}`, { state: i === 5 ? 'closing' : 'open' })),
  )[0] as ActorGroup;
  expect(filterGroup(group, '17').map((member) => member.actor)).toEqual(['ads-connection-17']);
  expect(filterGroup(group, ' Closing ').map((member) => member.actor)).toEqual(['ads-connection-5']);
  expect(filterGroup(group, '')).toHaveLength(20);
});

/** Names without a number. */
const letters = (i: number): string => `${i}`.replaceAll(/\d/g, (digit) => String.fromCharCode(97 + Number(digit)));
const unrelatedActors = (
  count: number,
  overridesOf: (i: number) => Partial<ActorSnapshot> = () => ({}),
): ActorSnapshot[] =>
  Array.from({ length: count }, (_, i) => actor(letters(i), { machine: 'worker', ...overridesOf(i) }));

test('siblings of too many kinds form one group per machine', () => {
  expect(rowsOf(...unrelatedActors(maxKindsOfSiblings))).toHaveLength(maxKindsOfSiblings);
  expect(names(rowsOf(actor('main'), ...unrelatedActors(maxKindsOfSiblings)))).toEqual(['main', 'worker ×100']);
});

test('the first rows of too many actors are shown, and the others are counted', () => {
  const distinctActors = unrelatedActors(10_000, (i) => ({ machine: `machine ${i}` }));
  const tree = treeOf(...distinctActors);
  expect([tree.rows.length, tree.omittedActors]).toEqual([maxActorRows, 10_000 - maxActorRows]);
  // This is exactly the limit.
  expect(treeOf(...distinctActors.slice(0, maxActorRows)).omittedActors).toBe(0);
});

test('each actor in a long chain of parents is a level, and the chain does not exhaust the stack', () => {
  const chain = unrelatedActors(30_000, (i) => (i === 0 ? {} : { parent: letters(i - 1) }));
  const { rows, omittedActors } = treeOf(...chain);
  expect([rows.length, rows.at(-1)!.depth, omittedActors]).toEqual([
    maxActorRows,
    maxActorRows - 1,
    30_000 - maxActorRows,
  ]);
});

test('an actor is found by its name, state or machine, with an exact match of the name first', () => {
  const all = unrelatedActors(10_000, (i) => ({ state: i === 7 ? 'waiting.for lock' : 'live' }));
  const searchResult = (text: string) => {
    const { rows, omittedActors } = findActors(all, text);
    return [rows.length, omittedActors, names(rows)[0]];
  };
  expect(searchResult('for LOCK')).toEqual([1, 0, 'h']);
  expect(searchResult(' worker ')).toEqual([maxActorRows, 10_000 - maxActorRows, 'a']);
  expect(findActors(all, 'j').omittedActors).toBeGreaterThan(1_000);
  expect(names(findActors(all, 'jjjj').rows)).toEqual(['jjjj']);
  expect(names(findActors([...all].reverse(), 'j').rows)[0]).toBe('j');
  expect(searchResult('nowhere')).toEqual([0, 0, undefined]);
});
