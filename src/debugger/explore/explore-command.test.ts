import { expect, test } from 'vitest';
import { assign, createMachine } from 'xstate';
import { exploreMachine } from '../generate/machine-world.ts';
import { exploreWithin } from './explore-command.ts';

const endless = createMachine({
  id: 'endless',
  context: { n: 0 },
  on: { add: { actions: assign({ n: ({ context }) => (context as { n: number }).n + 1 }) } },
});

test('chartpilot explore stops at the default limit for a machine with unlimited states, unless the user sets another limit', () => {
  const subject = { ...exploreMachine(endless, {}), defaultLimits: { states: 20 } };
  const printedTexts: string[] = [];
  const output = { out: (text: string) => printedTexts.push(text), error: () => {} };
  expect(exploreWithin(subject, { format: 'text' }, output)).toBe(0);
  expect(exploreWithin(subject, { format: 'text', limit: 30 }, output)).toBe(0);
  expect(printedTexts).toEqual([expect.stringContaining(': 20 states'), expect.stringContaining(': 30 states')]);
  expect(exploreMachine(endless, {}).defaultLimits).toEqual({ ms: 60_000 });
});
