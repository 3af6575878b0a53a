import { expect, test } from 'vitest';
import { sized } from '../harness/size-of-run.ts';
import { runRandomBootstraps } from '../random-bootstrap/run.ts';

const inputs = sized({ short: 200, full: 10_000 });

test(`${inputs} random agent configurations and environments cause a clear error or a bootstrap that Envoy accepts (agent §5)`, async () => {
  const shownToEnvoy = sized({ short: 10, full: 500 });
  const { findings, built, refused, shown } = await runRandomBootstraps({ seed: 20, inputs, shownToEnvoy });
  expect(findings).toEqual([]);
  // Without such inputs the test would prove nothing.
  expect(shown).toBe(shownToEnvoy);
  expect(Math.min(built, refused)).toBeGreaterThan(inputs / 10);
}, 3_600_000);
