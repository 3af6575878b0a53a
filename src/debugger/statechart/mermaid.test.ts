import { describe, expect, test } from 'vitest';
import { setup } from 'xstate';
import { type Statechart, statechartOf } from '../../runtime/trace/statechart.ts';
import { formatMermaid } from './mermaid.ts';

const machine = setup({
  actions: { tell: () => {}, stay: () => {} },
  guards: { isFine: () => true },
  delays: { timeout: 100 },
}).createMachine({
  id: 'ferry',
  initial: 'at the pier',
  on: { 'storm.began': '.sunk' },
  states: {
    'at the pier': {
      description: 'Waits for people; not: for cars.',
      entry: 'tell',
      on: {
        go: { target: 'under way.engine.running', guard: 'isFine', actions: 'tell' },
        note: { actions: 'stay' },
        no: {},
      },
      after: { timeout: 'sunk' },
    },
    'under way': {
      type: 'parallel',
      states: {
        engine: { initial: 'cold', states: { cold: { on: { key: 'running' } }, running: {} } },
        deck: {},
      },
    },
    sunk: { type: 'final' },
  },
});

describe('the mermaid diagram of a statechart', () => {
  test('has nested states, parallel regions, and each arrow in the state that contains both ends', () => {
    expect(formatMermaid(statechartOf(machine))).toBe(`stateDiagram-v2
  [*] --> s1_at_the_pier
  state "at the pier" as s1_at_the_pier
  note right of s1_at_the_pier
    Waits for people#59; not#58; for cars.
    entry / tell
    note / stay
  end note
  state "under way" as s2_under_way {
    state "engine" as s3_under_way_engine {
      [*] --> s4_under_way_engine_cold
      state "cold" as s4_under_way_engine_cold
      state "running" as s5_under_way_engine_running
      s4_under_way_engine_cold --> s5_under_way_engine_running : key
    }
    --
    state "deck" as s6_under_way_deck
  }
  state "sunk" as s7_sunk
  s7_sunk --> [*]
  state "anywhere in ferry" as s0_ferry_anywhere
  s0_ferry_anywhere --> s7_sunk : storm.began
  s1_at_the_pier --> s5_under_way_engine_running : go [isFine] / tell
  s1_at_the_pier --> s7_sunk : after timeout
`);
  });

  test('escapes characters that have a meaning in mermaid', () => {
    const oddChart: Statechart = {
      id: 'odd',
      states: [
        { path: '', type: 'compound', initial: 1 },
        { path: 'a "b" {c} %%', parent: 0, type: 'atomic', description: 'one\ntwo; three # four' },
      ],
      transitions: [{ source: 1, targets: [1], kind: 'event', on: 'x:y', guard: 'a < b' }],
    };
    const lines = formatMermaid(oddChart).split('\n');
    expect(lines).toContain('  state "a #quot;b#quot; #123;c#125; #37;#37;" as s1_a_b_c_');
    expect(lines).toContain('    one two#59; three #35; four');
    expect(lines).toContain('  s1_a_b_c_ --> s1_a_b_c_ : x#58;y [a #lt; b]');
  });
});
