import { describe, expect, test } from 'vitest';
import type { Deviation } from './check.ts';
import type { Message } from './message.ts';
import { MessageWindow } from './message-window.ts';

const deviationOf = (message: Message): Deviation => ({ kind: 'undeclared', message, expected: [], before: [] });

/** Numbers of the messages and of the deviations in the window, and counts of the other messages. */
function windowWith(contextSize: number, messages: number, departing: readonly number[]) {
  const window = new MessageWindow(contextSize);
  for (let seq = 1; seq <= messages; seq++) {
    const message = { seq, t: seq, from: 'a', to: 'b', type: 'x.y' };
    window.add(message, departing.includes(seq) ? [deviationOf(message)] : []);
  }
  return {
    messages: window.messages.map(({ seq }) => seq),
    deviations: window.deviations.map(({ message }) => message.seq),
    ...window.omittedCounts,
  };
}
const range = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_, i) => from + i);

describe('the window of messages around the first deviation', () => {
  test('contains all messages of a short run without a deviation', () => {
    expect(windowWith(2, 5, [])).toEqual({ messages: range(1, 5), deviations: [], earlier: 0, later: 0 });
    expect(windowWith(2, 0, [])).toEqual({ messages: [], deviations: [], earlier: 0, later: 0 });
  });

  test('contains the first 200 messages of a long run without a deviation', () => {
    expect(windowWith(3, 5_000, [])).toEqual({ messages: range(1, 200), deviations: [], earlier: 0, later: 4_800 });
  });

  test.each([1, 2, 3, 10, 199, 205, 206, 207, 208, 1_000])(
    'contains the messages around a deviation at message %i',
    (at) => {
      const from = Math.max(1, at - 3);
      const { messages, deviations, earlier, later } = windowWith(3, 1_100, [at, at + 2, at + 9]);
      expect(messages).toEqual(range(from, at + 3));
      expect(deviations).toEqual([at, at + 2]);
      expect({ earlier, later }).toEqual({ earlier: from - 1, later: 1_100 - at - 3 });
    },
  );

  test('contains only the deviating message if no context is requested', () => {
    expect(windowWith(0, 500, [400, 401])).toEqual({ messages: [400], deviations: [400], earlier: 399, later: 100 });
  });
});
