/**
 * `npm run test:random-bootstrap -- [--inputs 10000] [--envoy 500] [--seed N]`: prints the seed that reproduces a
 * finding.
 */
import { parseArgs } from 'node:util';
import { runRandomBootstraps } from './run.ts';

const { values } = parseArgs({
  options: { inputs: { type: 'string' }, envoy: { type: 'string' }, seed: { type: 'string' } },
});
const seed = Number(values.seed ?? Date.now() % 2 ** 31);
const inputs = Number(values.inputs ?? 10_000);
const result = await runRandomBootstraps({ seed, inputs, shownToEnvoy: Number(values.envoy ?? 500) });
for (const finding of result.findings.slice(0, 20)) console.log(finding);
const { built, refused, shown, findings } = result;
console.log(
  `seed ${seed}: ${inputs} inputs, ${built} bootstraps (${shown} shown to Envoy), ${refused} refused, ${findings.length} findings`,
);
process.exitCode = findings.length === 0 ? 0 : 1;
