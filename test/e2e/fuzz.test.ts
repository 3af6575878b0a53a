/** The beginning of what `npm run test:fuzz` does in its long form, always with the same seed. */
import { expect, test } from 'vitest';
import { findingText, runCampaign } from '../fuzz/campaign.ts';
import { subjectMakers } from '../fuzz/edges/index.ts';
import { sized } from '../harness/size-of-run.ts';

const seed = 20_261_122;
const forMs = sized({ short: 2_000, full: 13_000 });
/** Slow machines send input to every edge all the same. */
const reachesAll = true;
const leastAttacks = 10;

test.each(subjectMakers)('no byte at its edges crashes or misleads it: $name', async (maker) => {
  const { attacks, findings } = await runCampaign(maker, { seed, forMs, reachesAll, maxFindings: 1 });
  expect(findings.map(findingText)).toEqual([]);
  for (const edge of maker.edges) expect(attacks.get(edge), edge).toBeGreaterThanOrEqual(leastAttacks);
});
