/** The first part of `npm run test:fuzz`, always with the same seed. */
import { expect, test } from 'vitest';
import { findingText, runCampaign } from '../fuzz/campaign.ts';
import { subjectMakers } from '../fuzz/edges/index.ts';
import { sized } from '../harness/size-of-run.ts';

const seed = 20_261_122;
const forMs = sized({ short: 500, full: 13_000 });
/** Input reaches every interface on slow machines, too. */
const reachesAll = true;
const minAttacks = 10;

test.each(subjectMakers)('no input at the external interfaces crashes or misleads $name', async (maker) => {
  const { attacks, findings } = await runCampaign(maker, { seed, forMs, reachesAll, maxFindings: 1 });
  expect(findings.map(findingText)).toEqual([]);
  for (const edge of maker.edges) expect(attacks.get(edge), edge).toBeGreaterThanOrEqual(minAttacks);
});
