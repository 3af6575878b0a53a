import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { faultsOf } from '../../../test/fixtures/layout-faults.ts';
import { anyChart } from '../../../test/fixtures/random-chart.ts';
import { statechartOf } from '../../runtime/trace/statechart.ts';
import { layoutStatechart } from './layout.ts';
import { namedMachines } from './named-machines.ts';

describe('the layout of a statechart', () => {
  test.each(namedMachines.map(({ name }) => name))(
    'of %s: nothing overlaps, nothing is cut off, arrows lead from border to border',
    async (name) => {
      const chart = statechartOf(await namedMachines.find((machine) => machine.name === name)!.load());
      expect(faultsOf(chart, await layoutStatechart(chart))).toEqual([]);
    },
  );

  test('of any machine is as good', async () => {
    await fc.assert(
      fc.asyncProperty(anyChart, async (chart) => {
        expect(faultsOf(chart, await layoutStatechart(chart))).toEqual([]);
      }),
      { numRuns: 40, seed: 5 },
    );
  });

  test('is the same each time', async () => {
    const chart = statechartOf(await namedMachines.find(({ name }) => name === 'epoch')!.load());
    const first = await layoutStatechart(chart);
    const copy = JSON.parse(JSON.stringify(chart)) as typeof chart;
    expect(await layoutStatechart(copy)).toEqual(first);
  });

  test('goes down in the order of the definition, and up where life goes back', async () => {
    const chart = statechartOf(await namedMachines.find(({ name }) => name === 'service-registry')!.load());
    const { states, arrows } = await layoutStatechart(chart);
    for (const { source, target, points } of arrows) {
      const isDown = points.at(-1)!.y > points[0]!.y;
      expect(isDown, `${chart.states[source]!.path} → ${chart.states[target]!.path}`).toBe(target > source);
    }
    expect(states[1]!.y).toBeLessThan(states[2]!.y);
  });
});
