import { expect, test } from 'vitest';
import { tangledMachine } from '../../../test/fixtures/tangled-machine.ts';
import { header } from '../../../test/fixtures/traces.ts';
import type { Statechart } from '../../runtime/trace/statechart.ts';
import { formatMermaid } from '../statechart/mermaid.ts';
import { drawMachine } from './draw-machine.ts';
import { DrawingThread, drawingLimits, drawOutput } from './drawing-thread.ts';

const light = header.machines[0]!;

test('DrawingThread draws the same charts as a direct call', async () => {
  expect(await drawOutput('pictures', light)).toEqual(await drawMachine(light));
  expect(await drawOutput('mermaid', light)).toBe(formatMermaid(light));
});

test('DrawingThread stops drawing a machine at the time limit, and draws the next one', async () => {
  const thread = new DrawingThread({ machineMs: 1_000 });
  let tickCount = 0;
  const ticker = setInterval(() => tickCount++, 10);
  try {
    expect(await thread.draw('svg', tangledMachine('tangle', 120, 500))).toEqual({
      failed: 'time limit reached: 1 s for a machine',
    });
    // The caller's event loop still handles signals.
    expect(tickCount).toBeGreaterThan(5);
  } finally {
    clearInterval(ticker);
    thread.stop();
  }
  expect(await drawOutput('svg', light)).toContain('data-machine="light"');
});

test('DrawingThread limits the time for all machines of a trace', async () => {
  const thread = new DrawingThread({ machineMs: 200, traceMs: 100 });
  await thread.draw('svg', tangledMachine('tangle', 120, 500));
  expect(await thread.draw('svg', light)).toEqual({
    failed: 'time limit reached: 0.1 s for all machines of a trace',
  });
  thread.stop();
});

const row = (length: number): Statechart['states'] =>
  Array.from({ length }, (_, number) =>
    number === 0 ? { path: '', type: 'compound' } : { path: `s${number}`, parent: number - 1, type: 'compound' },
  );
const { states, transitions, levels } = drawingLimits;

test.each([
  ['no states', { id: 'm', states: [], transitions: [] }, 'it has no states'],
  ['too many states', tangledMachine('m', states + 1, 1), 'it has 501 states, the limit is 500'],
  ['too many transitions', tangledMachine('m', 3, transitions + 1), 'it has 2001 transitions, the limit is 2000'],
  [
    'too many targets',
    { ...light, transitions: [{ ...light.transitions[0]!, targets: Array(transitions + 1).fill(2) }] },
    'it has 2001 transitions, the limit is 2000',
  ],
  [
    'too many levels of states',
    { id: 'm', states: row(levels + 1), transitions: [] },
    'it has 31 levels, the limit is 30',
  ],
])('DrawingThread rejects a machine with %s', async (_, machine, errorText) => {
  await expect(drawOutput('table', machine)).rejects.toMatchObject({
    code: 'NOT_DRAWN',
    message: expect.stringContaining(errorText),
  });
});
