import { describe, expect, test } from 'vitest';
import { agentMachine } from '../../../machines/agent/agent.machine.ts';
import { discoveryProgramMachines } from '../../../machines/discovery/program-machines.ts';
import { machinesOf, type Statechart, statechartOf } from '../../runtime/trace/statechart.ts';
import { chartKey, readKnownCharts } from '../visualize/known-charts.ts';
import { type BriefChart, briefChartsOf, briefScreen, foldingsOf } from './brief-charts.ts';
import { chooseBriefChart, wholeRows } from './brief-choice.ts';
import { foldStatechart, openStatesFor } from './fold-statechart.ts';

/** `a` has a row of inner states, `z` a long row of eleven. */
const chart: Statechart = {
  id: 'made up',
  states: [
    { path: '', type: 'compound', initial: 1 },
    { path: 'a', parent: 0, type: 'compound', initial: 2 },
    { path: 'a.one', parent: 1, type: 'atomic' },
    { path: 'a.two', parent: 1, type: 'atomic' },
    { path: 'z', parent: 0, type: 'compound', initial: 5 },
    ...Array.from({ length: 11 }, (_, i) => ({ path: `z.s${i}`, parent: 4, type: 'atomic' as const })),
  ],
  transitions: [
    { source: 2, targets: [3], kind: 'event', on: 'next' },
    { source: 3, targets: [5], kind: 'event', on: 'leave', actions: ['wave'] },
    ...Array.from({ length: 10 }, (_, i) => ({ source: 5 + i, targets: [6 + i], kind: 'event' as const, on: 'on' })),
  ],
};
const paths = (folded: ReturnType<typeof foldStatechart>): string[] => folded.chart.states.map(({ path }) => path);

describe('a brief chart with folded states', () => {
  test('shows a folded state as one box, to which its arrows lead', () => {
    const folded = foldStatechart(chart, new Set([1]));
    expect(paths(folded)).toEqual(['', 'a', 'a.one', 'a.two', 'z']);
    expect(folded.leftOut).toEqual([0, 0, 0, 0, 11]);
    expect(folded.chart.transitions[1]).toMatchObject({ source: 3, targets: [4] });
    // Nothing is drawn inside the box, but every transition keeps its number.
    expect(folded.chart.transitions).toHaveLength(chart.transitions.length);
    expect(folded.chart.transitions.slice(2).every(({ targets }) => targets.length === 0)).toBe(true);
  });

  test('replaces the states of a long row that are far from the active state with one box', () => {
    const folded = foldStatechart(chart, new Set([4]), 8);
    expect(paths(folded).filter((path) => /^z\.s/.test(path))).toHaveLength(7);
    expect(paths(folded)).toContain('z.s3');
    expect(paths(folded)).toContain('z.… 4 more');
    expect(folded.numbers[paths(folded).indexOf('z.… 4 more')]).toBeUndefined();
  });
});

describe('the brief chart for an active state', () => {
  const pictures: BriefChart[] = foldingsOf(chart).map((folding) => ({ ...folding, text: '' }));
  const shownRegions = (leaf: number, openedByHand: number[] = []): [readonly number[], number | undefined] => {
    const { open, near } = chooseBriefChart(chart, pictures, [leaf], openedByHand)!;
    return [open, near];
  };

  test('shows the active state with as few open states as possible', () => {
    expect(shownRegions(2)).toEqual([[1], undefined]);
    expect(shownRegions(8)).toEqual([[4], 8]);
  });

  test('shows states that the user opened', () => {
    expect(shownRegions(2, [4])).toEqual([[1, 4], undefined]);
    expect(shownRegions(8, [wholeRows])).toEqual([[4], undefined]);
  });
});

test('a brief chart has the numbers of the definition for highlighting, and marks folded states', async () => {
  const pictures = await briefChartsOf(chart);
  const { text } = chooseBriefChart(chart, pictures, [2])!;
  expect(text).toMatch(/class="state atomic folded" data-state="4" data-path="z"/);
  expect(text).toMatch(/▸.*11.*states/);
  expect(text).toMatch(/data-transition="1"/);
  expect(text).not.toContain('<style>');
});

describe('font size of the brief chart in a window of 1440 × 900', () => {
  const knownCharts = readKnownCharts();
  const machines = machinesOf(agentMachine, ...discoveryProgramMachines).map(statechartOf);

  test.each(machines.map((machine) => [machine.id, machine] as const))(
    'is at least 9 px for %s in each of its states',
    (_, machine) => {
      const pictures = knownCharts[chartKey(machine)]?.brief;
      expect(pictures, 'run npm run build').toBeDefined();
      const leaves = machine.states.flatMap(({ type }, number) =>
        type === 'atomic' || type === 'final' ? [number] : [],
      );
      for (const leaf of leaves) {
        const picture = chooseBriefChart(machine, pictures!, [leaf])!;
        for (const state of openStatesFor(machine, [leaf])) expect(picture.open).toContain(state);
        const [, width, height] = /viewBox="0 0 (\S+) (\S+)"/.exec(picture.text)!.map(Number);
        const scale = Math.min(briefScreen.width / width!, briefScreen.height / height!);
        expect(12 * scale, machine.states[leaf]!.path).toBeGreaterThanOrEqual(9);
      }
    },
  );
});
