import { describe, expect, test } from 'vitest';
import {
  type Figure,
  figure,
  formatFigure,
  missedGoals,
  onlyGrowthGoals,
  pushFigures,
  uncheckedGoals,
  varietyFigures,
} from './push-figures.ts';
import type { PushSample } from './push-run.ts';
import { varietyRows } from './varied-meshes.ts';

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

  test('figures are medians with their ratio to the reference', () => {
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

  test('figures of a mesh with another size have no goals, and figures without a reference have no ratio', () => {
    const [first] = pushFigures('small', 'delta', { ours: [sample(1)], reference: [] }, false);
    expect(first).toEqual({ name: 'small: initial CPU', unit: 's', ours: 3, samples: 1 });
  });
});

describe('a goal', () => {
  test('a goal is missed when the figure equals or exceeds it', () => {
    expect(missedGoals(figure({ name: 'x', unit: 'ms', ours: [130], goal: 130 }))).toEqual([
      'x: 130 ms, the goal is under 130 ms',
    ]);
    expect(missedGoals(figure({ name: 'x', unit: 'ms', ours: [129], goal: 130 }))).toEqual([]);
  });

  test('a goal can limit the ratio to the reference', () => {
    const slowFigure = figure({ name: 'x', unit: 'ms', ours: [200], reference: [100], ratioGoal: 1.5 });
    expect(missedGoals(slowFigure)).toEqual(["x: 2 × go-control-plane's, the goal is at most 1.5"]);
    expect(formatFigure(slowFigure)).toMatch(/go 100, 2 ×.*MISSED$/);
    expect(formatFigure(figure({ name: 'x', unit: 'ms', ours: [90], reference: [100], ratioGoal: 1.5 }))).toMatch(
      /ok$/,
    );
  });
});

describe('figures of a varied mesh', () => {
  const base = { row: 'the row 1', goals: { 'route CPU': 1.5, 'initial CPU': 3 }, samples: [sample(1)] };
  const figures = varietyFigures('50', { ours: [sample(2)], reference: [], ratioGoals: {} }, base);
  const figureNamed = (name: string): Figure => figures.find((one) => one.name === `50: ${name}`)!;

  test('figures of a varied mesh contain their growth relative to the base row', () => {
    expect(figureNamed('route CPU')).toMatchObject({ ours: 0.1, growth: 2, growthGoal: 1.5 });
    expect(figureNamed('endpoint CPU')).toMatchObject({ growth: 2 });
    expect(figureNamed('endpoint CPU')).not.toHaveProperty('growthGoal');
    expect(formatFigure(figureNamed('route CPU'))).toMatch(/grows 2 × +≤ 1.5 × +MISSED$/);
  });

  test('a growth above its goal is reported as a missed goal', () => {
    expect(figures.flatMap(missedGoals)).toEqual(['50: route CPU: grows 2 ×, the goal is at most 1.5']);
  });

  test('figures have no growth without a base row', () => {
    const figuresWithoutBase = varietyFigures('50', {
      ours: [sample(2)],
      reference: [sample(1)],
      ratioGoals: { 'initial CPU': 1 },
    });
    expect(figuresWithoutBase.every(({ growth }) => growth === undefined)).toBe(true);
    expect(figuresWithoutBase.flatMap(missedGoals)).toEqual([expect.stringContaining("2 × go-control-plane's")]);
  });
});

describe('a goal that cannot be checked', () => {
  test('a ratio goal is reported as not checked, rather than met, if there is no go-control-plane', () => {
    const figures = pushFigures('delta', 'delta', { ours: [sample(1)], reference: [] }, true);
    const route = figures.find(({ name }) => name === 'delta: route CPU')!;
    expect(missedGoals(route)).toEqual([]);
    expect(formatFigure(route)).toMatch(/NOT JUDGED$/);
    expect(uncheckedGoals(figures)).toEqual([
      'not judged, as go-control-plane was not measured: delta: endpoint → last ACK; delta: endpoint CPU; ' +
        'delta: route → last ACK; delta: route CPU',
    ]);
    // A run without ratios has no ratio goals to check.
    expect(uncheckedGoals(figures.map(({ ratioGoal: _, ...rest }) => rest))).toEqual([]);
  });

  test('a growth goal without measurements names the base row', () => {
    const base = { row: 'the row 1', goals: { 'route CPU': 1.7 }, samples: [] };
    const figures = varietyFigures('50', { ours: [sample(1)], reference: [], ratioGoals: {} }, base);
    expect(uncheckedGoals(figures)).toEqual(['not judged, as the row 1 was not measured: 50: route CPU']);
    expect(onlyGrowthGoals(figures)).toEqual([]);
  });
});

test('seconds for an idle machine are printed but not checked', () => {
  const base = { row: 'the row 1', goals: { 'route CPU': 3 }, samples: [sample(1)] };
  const quietGoals = { 'route CPU': 0.01 };
  const figures = varietyFigures('50', { ours: [sample(2)], reference: [], ratioGoals: {}, quietGoals }, base);
  const route = figures.find(({ name }) => name === '50: route CPU')!;
  expect(formatFigure(route)).toMatch(/\(a quiet machine: < 0.01 s\) {2}ok$/);
  expect(onlyGrowthGoals(figures)).toEqual([route]);
});

test('goals name existing figures, and base rows exist', () => {
  const names = varietyFigures('x', { ours: [], reference: [], ratioGoals: {} }).map(({ name }) => name.slice(3));
  for (const { base, ratioGoals = {}, quietGoals = {} } of Object.values(varietyRows)) {
    expect(names).toEqual(expect.arrayContaining([...Object.keys(base?.goals ?? {}), ...Object.keys(ratioGoals)]));
    expect(names).toEqual(expect.arrayContaining(Object.keys(quietGoals)));
    if (base !== undefined) expect(Object.keys(varietyRows)).toContain(base.row);
  }
});
