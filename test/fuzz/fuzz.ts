/**
 * `npm run test:fuzz -- [--minutes N] [--seed N] [--only EDGE,…] [--attacks N]`: a long run of the campaign that `npm
 * test` runs briefly.
 */
import { parseArgs } from 'node:util';
import { findingText, runCampaign } from './campaign.ts';
import { subjectMakers } from './edges/index.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000_000) },
    only: { type: 'string' },
    attacks: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
});
const knownEdges = subjectMakers.flatMap(({ edges }) => edges);
const selectedEdges = values.only?.split(',');
const unknownEdges = selectedEdges?.filter((name) => !knownEdges.includes(name)) ?? [];
const [seed, minutes] = [Number(values.seed), Number(values.minutes)];
if (values.help || unknownEdges.length > 0 || !Number.isSafeInteger(seed) || !(minutes > 0)) {
  if (unknownEdges.length > 0) console.error(`no such edge: ${unknownEdges.join(', ')}`);
  console.error('usage: npm run test:fuzz -- [--minutes N, each program] [--seed N] [--only EDGE,…] [--attacks N]');
  console.error(`edges: ${knownEdges.join(', ')}`);
  process.exit(values.help ? 0 : 2);
}
const makers = subjectMakers.filter(
  ({ edges }) => selectedEdges === undefined || edges.some((edge) => selectedEdges.includes(edge)),
);
console.log(`seed ${seed}, ${minutes} minutes for each of: ${makers.map(({ name }) => name).join(', ')}`);
let findings = 0;
for (const maker of makers) {
  const result = await runCampaign(maker, {
    seed,
    forMs: minutes * 60_000,
    ...(selectedEdges !== undefined && { only: selectedEdges }),
    ...(values.attacks !== undefined && { attacks: Number(values.attacks) }),
    report: (finding) => console.error(`\n${findingText(finding)}\n`),
  });
  for (const [edge, attacks] of result.attacks) console.log(`${edge}: ${attacks} attacks`);
  findings += result.findings.length;
}
console.log(`${findings} findings`);
process.exit(findings === 0 ? 0 : 1);
