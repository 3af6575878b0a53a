import { expect, test } from 'vitest';
import { sized } from '../harness/size-of-run.ts';
import { runRandomConfigurations } from '../random-config/run.ts';

const configurations = sized({ short: 5, full: 300 });

test(`Envoy accepts ${configurations} random valid configurations, and as many invalid ones are rejected without effect`, async () => {
  const run = await runRandomConfigurations({ firstSeed: 1, configurations, report: () => {}, shrinks: false });
  expect(run.findings).toEqual([]);
  expect(run.accepted).toBe(configurations);
  expect(run.refused).toBeGreaterThan(0.96 * configurations);
  expect(run.objects.valid / run.objects.drawn).toBeGreaterThan(0.6);
});
