import { expect, test } from 'vitest';
import { epochMachine } from '../../../machines/agent/envoy/epoch.machine.ts';
import { tangledMachine } from '../../../test/fixtures/tangled-machine.ts';
import { header } from '../../../test/fixtures/traces.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { statechartOf } from '../../runtime/trace/statechart.ts';
import { chartKey, readKnownCharts } from './known-charts.ts';
import { Sessions } from './page-session.ts';

test('the session of a trace has the built-in chart for a machine of chartpilot', async () => {
  const chart = statechartOf(epochMachine);
  const knownChart = readKnownCharts()[chartKey(chart)]?.whole;
  expect(knownChart, 'run npm run build').toContain('data-machine="epoch"');
  const read = JSON.parse(JSON.stringify(chart)) as typeof chart;
  expect((await new Sessions().sessionOf({ ...header, machines: [read] })).charts.epoch).toBe(knownChart);
});

test('the session of a trace has a chart drawn from the trace for any other machine', async () => {
  const sessions = new Sessions();
  const { charts } = await sessions.sessionOf(header);
  expect(charts.light).toContain('data-path="green"');
  expect((await sessions.sessionOf(header)).charts.light).toBe(charts.light);
});

test("the session of a trace has a separate chart for a changed machine that has the name of one of chartpilot's", async () => {
  const [chart] = header.machines;
  const { charts } = await new Sessions().sessionOf({ ...header, machines: [{ ...chart!, id: 'epoch' }] });
  expect(charts.epoch).toContain('data-path="green"');
});

test('the session of a trace omits only the chart of an invalid machine', async () => {
  const brokenMachines = [
    { id: 'without states', states: [], transitions: [] },
    {
      id: 'led astray',
      states: [{ path: '', type: 'atomic' }],
      transitions: [{ source: 7, targets: [9], kind: 'event', on: 'x' }],
    },
  ] as unknown as typeof header.machines;
  const { charts, notDrawn } = await new Sessions().sessionOf({
    ...header,
    machines: [...brokenMachines, ...header.machines],
  });
  expect(Object.keys(charts)).toEqual(['light']);
  expect(notDrawn).toEqual({
    'without states': 'it has no states',
    'led astray': expect.stringMatching(/^layout failed/),
  });
});

test('the session of a trace contains the reason instead of the chart if drawing takes too long', async () => {
  const sessions = new Sessions(undefined, {}, { machineMs: 5_000 });
  const hostile = sessions.sessionOf({ ...header, machines: [tangledMachine('tangle', 120, 500)] });
  // On a busy machine the other chart may also take too long, and is then drawn on the next request.
  await eventually('the other machine is drawn', async () => 'light' in (await sessions.sessionOf(header)).charts);
  expect(await hostile).toMatchObject({ charts: {}, notDrawn: { tangle: 'time limit reached: 5 s for a machine' } });
});
