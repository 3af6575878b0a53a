/**
 * `npm run test:random-config -- [--configurations N] [--seed N]`: a long run of the test that `npm test` runs briefly.
 */
import { parseArgs } from 'node:util';
import { runRandomConfigurations } from './run.ts';

const { values } = parseArgs({
  options: {
    configurations: { type: 'string', default: '5000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const [firstSeed, configurations] = [Number(values.seed), Number(values.configurations)];
console.log(`${configurations} random configurations from seed ${firstSeed}`);
const report = (finding: string): void => console.error(`\n${finding}`);
const { accepted, refused, objects, findings } = await runRandomConfigurations({
  firstSeed,
  configurations,
  report,
  shrinks: true,
});
console.log(
  `${accepted} configurations taken by every proxy; ${refused} invalid objects rejected, the last valid version kept`,
);
console.log(`of ${objects.drawn} random objects ${objects.valid} were valid; ${findings.length} findings`);
process.exit(findings.length === 0 ? 0 : 1);
