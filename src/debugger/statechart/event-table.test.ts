import { expect, test } from 'vitest';
import { createMachine } from 'xstate';
import { statechartOf } from '../../runtime/trace/statechart.ts';
import { eventTableOf, formatEventTable } from './event-table.ts';

const door = statechartOf(
  createMachine({
    id: 'door',
    initial: 'open',
    on: { 'bell.rung': { actions: 'bark' } },
    states: {
      open: { on: { 'door.shut': { guard: 'isFree', target: 'shut' }, 'key.turned': {} } },
      shut: {
        initial: 'choosing',
        on: { 'key.turned': { target: '.locked', description: 'from inside' } },
        states: {
          choosing: { always: 'unlocked' },
          unlocked: { on: { 'door.opened': '#door.open' } },
          locked: { on: { 'key.turned': [{ guard: 'isRight', target: 'unlocked' }, {}], 'bell.rung': {} } },
        },
      },
      gone: { type: 'final' },
    },
  }),
);

test('the event table has a row for each stable state and a column for each event', () => {
  const { events, states } = eventTableOf(door);
  expect(events).toEqual(['bell.rung', 'door.opened', 'door.shut', 'key.turned']);
  expect(states.map(({ path }) => path)).toEqual(['open', 'shut.unlocked', 'shut.locked']);
});

test('a cell of the event table shows whether an event changes the state, runs an action, is ignored intentionally, is conditional or is unexpected', () => {
  const [head, , ...rows] = formatEventTable(door).split('\n');
  expect(head).toBe('|  | `bell.rung` | `door.opened` | `door.shut` | `key.turned` |');
  expect(rows.slice(0, 3)).toEqual([
    '| `open` | • | × | (→) | – |',
    '| `shut.unlocked` | • | → | × | → |',
    '| `shut.locked` | – | × | × | (→) |',
  ]);
});

test('the event table lists the tried transitions of the state, then of its ancestors, up to an unconditional one', () => {
  const text = formatEventTable(door);
  expect(text).toContain('- **shut.unlocked**\n  - `bell.rung`: bark\n  - `door.opened`: → open\n');
  expect(text).toContain('  - `key.turned`: → shut.locked (from inside)\n');
  expect(text).toContain('- **shut.locked**\n  - `key.turned`: if isRight: → shut.unlocked; ignored\n');
});

test('the event table has a last column for the wildcard, which accepts events that have no other transition in the state', () => {
  const chart = statechartOf(
    createMachine({
      id: 'wild',
      initial: 'a',
      states: {
        a: { on: { go: 'b', 'door.*': 'c', '*': { actions: 'note' } } },
        b: { on: { 'door.open': { guard: 'isFree', target: 'a' }, 'door.*': 'c' } },
        c: {},
      },
    }),
  );
  const [head, , ...rows] = formatEventTable(chart).split('\n');
  expect(head).toBe('|  | `door.open` | `go` | `door.*` | `*` |');
  expect(rows.slice(0, 3)).toEqual(['| `a` | → | → | → | • |', '| `b` | (→) | × | → | × |', '| `c` | × | × | × | × |']);
});

test('the event table of a chart that receives no events is empty', () => {
  expect(formatEventTable(statechartOf(createMachine({ id: 'rock' })))).toBe('No other actor sends it events.\n');
});

test('the event table escapes markup in a definition', () => {
  const hostile = '`|<img src=x onerror=alert(1)>\n# heading';
  const table = formatEventTable(
    statechartOf(
      createMachine({
        id: 'rock',
        initial: hostile,
        states: { [hostile]: { on: { [hostile]: { target: hostile, description: hostile } } } },
      }),
    ),
  );
  expect(table.split('\n').filter((line) => !/^(?:\||-| {2}-|$)/.test(line))).toEqual([]);
  expect(table.replaceAll(/`[^`\n]*`/g, '')).not.toContain('<img');
  expect(table).toContain('\\|<img');
});
