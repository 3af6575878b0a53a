import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { faultsOf } from '../../../test/fixtures/layout-faults.ts';
import { anyChart } from '../../../test/fixtures/random-chart.ts';
import { statechartOf } from '../../runtime/trace/statechart.ts';
import { layoutStatechart } from './layout.ts';
import { namedMachines } from './named-machines.ts';

const ownChart = async (name: string) =>
  statechartOf(await namedMachines.find((machine) => machine.name === name)!.load());
const agentCharts = namedMachines.filter(({ file }) => file.startsWith('machines/agent/')).map(({ name }) => name);

describe('the layout of a statechart', () => {
  test.each(namedMachines.map(({ name }) => name))(
    'has no overlaps and no truncated texts for %s, and its arrows lead from border to border',
    async (name) => {
      const chart = await ownChart(name);
      expect(faultsOf(chart, await layoutStatechart(chart))).toEqual([]);
    },
  );

  test.each(agentCharts)('fits a screen at a readable size for %s', async (name) => {
    const { width, height } = await layoutStatechart(await ownChart(name));
    expect(Math.min(1920 / width, 1000 / height)).toBeGreaterThan(0.5);
  });

  test('has no overlaps and no truncated texts for a random machine', async () => {
    await fc.assert(
      fc.asyncProperty(anyChart, async (chart) => {
        expect(faultsOf(chart, await layoutStatechart(chart))).toEqual([]);
      }),
      { numRuns: 40, seed: 5 },
    );
  });

  test('is deterministic', async () => {
    const chart = await ownChart('epoch');
    const first = await layoutStatechart(chart);
    const copy = JSON.parse(JSON.stringify(chart)) as typeof chart;
    expect(await layoutStatechart(copy)).toEqual(first);
  });

  test('follows the definition downwards, with arrows upwards where a transition leads back', async () => {
    const chart = await ownChart('service-registry');
    const { states, arrows } = await layoutStatechart(chart);
    for (const { source, target, points } of arrows) {
      const isDown = points.at(-1)!.y > points[0]!.y;
      expect(isDown, `${chart.states[source]!.path} → ${chart.states[target]!.path}`).toBe(target > source);
    }
    expect(states[1]!.y).toBeLessThan(states[2]!.y);
  });
});
