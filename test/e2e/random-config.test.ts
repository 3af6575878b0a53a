import { expect, test } from 'vitest';
import { runRandomConfigurations } from '../random-config/run.ts';

test('300 random configurations that are valid are taken by Envoy; as many mistakes are refused and change nothing', async () => {
  const run = await runRandomConfigurations({ firstSeed: 1, configurations: 300, report: () => {}, shrinks: false });
  expect(run.findings).toEqual([]);
  expect(run.accepted).toBe(300);
  expect(run.refused).toBeGreaterThan(290);
  expect(run.objects.valid / run.objects.drawn).toBeGreaterThan(0.6);
}, 300_000);
