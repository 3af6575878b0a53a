import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { CounterByKey, labelNamesOf, maxSeriesPerCounter } from './cheap-metrics.ts';

it('CounterByKey limits the number of its series, and counts further names in a shared one', async () => {
  const registry = new Registry();
  const tally = new CounterByKey(registry, { name: 'refused', help: 'x' }, labelNamesOf('name'));
  for (let at = 0; at < maxSeriesPerCounter + 1_000; at++) tally.add(`bank/${at}`);
  tally.add('bank/7');
  const lines = (await registry.metrics()).split('\n').filter((line) => line.startsWith('refused{'));
  expect(lines).toHaveLength(maxSeriesPerCounter + 1);
  expect(lines).toContain('refused{name="other other"} 1000');
  expect(lines).toContain('refused{name="bank/7"} 2');
});
