import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { labelled, maxSeriesOfTally, Tally } from './cheap-metrics.ts';

it('a counter has a limited number of series, whatever names objects have; what is beyond is counted in one', async () => {
  const registry = new Registry();
  const tally = new Tally(registry, { name: 'refused', help: 'x' }, labelled('name'));
  for (let at = 0; at < maxSeriesOfTally + 1_000; at++) tally.add(`bank/${at}`);
  tally.add('bank/7');
  const lines = (await registry.metrics()).split('\n').filter((line) => line.startsWith('refused{'));
  expect(lines).toHaveLength(maxSeriesOfTally + 1);
  expect(lines).toContain('refused{name="other other"} 1000');
  expect(lines).toContain('refused{name="bank/7"} 2');
});
