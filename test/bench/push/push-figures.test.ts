import { describe, expect, test } from 'vitest';
import { figure, formatFigure, missedGoals, pushFigures } from './push-figures.ts';
import type { PushSample } from './push-run.ts';

const change = (ackMs: number, cpuMs: number) => ({ ackMs, cpuMs, clientCpuMs: 1, messageBytes: 1 });
const sample = (factor: number): PushSample => ({
  initialMs: 4_000 * factor,
  initialCpuMs: 3_000 * factor,
  initialClientCpuMs: 1_000,
  initialBytes: 1,
  rssMib: 100,
  peakMib: 200 * factor,
  endpoint: [change(10 * factor, 20 * factor), change(20 * factor, 20 * factor), change(1_000, 1_000)],
  route: [change(100 * factor, 50 * factor)],
});

describe('figures of pushes', () => {
  const figures = pushFigures('delta', 'delta', { ours: [sample(1), sample(1)], reference: [sample(2)] }, true);

  test('are medians, with the ratio to the reference', () => {
    expect(figures.find(({ name }) => name === 'delta: endpoint → last ACK')).toEqual({
      name: 'delta: endpoint → last ACK',
      unit: 'ms',
      ours: 20,
      samples: 6,
      reference: 40,
      ratio: 0.5,
      ratioGoal: 1.5,
      goal: 130,
    });
  });

  test('have no goals in another size, and no ratio without a reference', () => {
    const [first] = pushFigures('small', 'delta', { ours: [sample(1)], reference: [] }, false);
    expect(first).toEqual({ name: 'small: initial CPU', unit: 's', ours: 3, samples: 1 });
  });
});

describe('a goal', () => {
  test('is missed when it is reached or passed', () => {
    expect(missedGoals(figure({ name: 'x', unit: 'ms', ours: [130], goal: 130 }))).toEqual([
      'x: 130 ms, the goal is under 130 ms',
    ]);
    expect(missedGoals(figure({ name: 'x', unit: 'ms', ours: [129], goal: 130 }))).toEqual([]);
  });

  test('may be one beside the reference', () => {
    const slow = figure({ name: 'x', unit: 'ms', ours: [200], reference: [100], ratioGoal: 1.5 });
    expect(missedGoals(slow)).toEqual(["x: 2 × go-control-plane's, the goal is at most 1.5"]);
    expect(formatFigure(slow)).toMatch(/go 100, 2 ×.*MISSED$/);
    expect(formatFigure(figure({ name: 'x', unit: 'ms', ours: [90], reference: [100], ratioGoal: 1.5 }))).toMatch(
      /ok$/,
    );
  });
});
