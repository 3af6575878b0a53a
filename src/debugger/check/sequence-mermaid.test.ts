import { describe, expect, test } from 'vitest';
import { parseDiagram } from '../diagram/parse.ts';
import type { Deviation } from './check.ts';
import type { Message } from './message.ts';
import { sequenceMermaid } from './sequence-mermaid.ts';

const message = (seq: number, from: string, to: string, type: string): Message => ({
  seq,
  t: seq * 1.5,
  from,
  to,
  type,
});

const start = message(7, 'supervisor', 'epoch-1', 'epoch.start');
const live = message(8, 'epoch-1', 'supervisor', 'epoch.live');
const deviation: Deviation = {
  kind: 'out-of-order',
  message: live,
  diagram: { file: 'restart.mmd', line: 12 },
  expected: [{ file: 'restart.mmd', line: 12, from: 'epoch-1', to: 'supervisor', type: 'epoch.started' }],
  before: [start],
};

describe('the mermaid diagram of messages', () => {
  test('shows arrows between named actors with record number and time', () => {
    expect(sequenceMermaid({ about: ['a trace'], messages: [start, live] })).toBe(
      [
        '%% a trace',
        'sequenceDiagram',
        '  participant supervisor as supervisor',
        '  participant epoch_1 as epoch-1',
        '  supervisor->>epoch_1: epoch.start (record 7, 10.5 ms)',
        '  epoch_1->>supervisor: epoch.live (record 8, 12 ms)',
        '',
      ].join('\n'),
    );
  });

  test('shows a deviation on a coloured background with the expected messages', () => {
    const text = sequenceMermaid({ messages: [start, live], deviations: [deviation] });
    expect(text.split('\n').slice(4).join('\n')).toBe(
      [
        '  rect rgba(220, 50, 50, 0.25)',
        '    epoch_1->>supervisor: epoch.live (record 8, 12 ms)',
        '    note over epoch_1,supervisor: record 8 is out of order (restart.mmd:12): epoch-1 → supervisor: epoch.live' +
          '<br/>expected:<br/>epoch-1 → supervisor: epoch.started (restart.mmd:12)',
        '  end',
        '',
      ].join('\n'),
    );
  });

  test('names at most six expected messages', () => {
    const expected = Array.from({ length: 9 }, (_, line) => ({ ...deviation.expected[0]!, line }));
    const text = sequenceMermaid({ messages: [live], deviations: [{ ...deviation, expected }] });
    expect(text).toContain('restart.mmd:5)<br/>… and 3 more');
    expect(text).not.toContain('restart.mmd:6)');
  });

  test('shows how many messages are omitted above and below', () => {
    const lines = sequenceMermaid({ messages: [start], above: '3 before', below: '4 after' }).split('\n');
    expect(lines[3]).toBe('  note over supervisor,epoch_1: 3 before');
    expect(lines.at(-2)).toBe('  note over supervisor,epoch_1: 4 after');
  });

  test('contains a note if there are no messages', () => {
    expect(sequenceMermaid({ messages: [], below: 'nothing' })).toContain('note over nobody: nothing');
  });

  test('is valid input of the parser of sequence contracts', () => {
    const messages = [
      start,
      message(9, 'supervisor', 'supervisor', 'timer backoff'),
      message(10, 'supervisor', 'epoch-1/process', 'spawn'),
      message(11, 'epoch-1', 'supervisor', 'done'),
    ];
    const { participants } = parseDiagram(sequenceMermaid({ messages, above: 'x', below: 'y' }), 'drawn.mmd');
    expect(participants.map(({ name }) => name.text)).toEqual(['supervisor', 'epoch-1', 'epoch-1/process']);
  });

  test('distinguishes actors whose names differ only in punctuation or are mermaid keywords', () => {
    const text = sequenceMermaid({
      messages: [message(1, 'a-1', 'a/1', 'x.y'), message(2, 'end', 'Loop', 'x.y'), message(3, '?', '??', 'x.y')],
    });
    const arrows = text.split('\n').filter((line) => line.includes('->>'));
    expect(arrows.map((line) => line.trim().split(':')[0])).toEqual(['a_1->>a_1_2', 'end_->>Loop_', '_->>__2']);
  });

  test('escapes names and types', () => {
    const evil = 'x.y; participant z\nend %%{init}%% #lt; <img src=x>';
    const text = sequenceMermaid({ about: [evil], messages: [message(1, evil, 'b', evil)] });
    expect(text.split('\n')).toHaveLength(6);
    for (const line of text.split('\n').slice(1)) {
      expect(line.replaceAll(/#(35|59|lt|gt);/g, '').replace('->>', '')).not.toMatch(/[#;<>]/);
    }
  });
});
