/** `npm run cluster`: builds the Go programs of `npm test`, or the named programs, including those of nightly runs. */
import { explainError } from '../../src/runtime/errors.ts';
import {
  apiServer,
  clusterDns,
  consul,
  findOrBuild,
  goPeer,
  goTemplate,
  goTemplates,
  helm,
  istioctl,
  mergeOracle,
  nodeProgram,
} from './go-program.ts';

const names = process.argv.slice(2);
const programsOfEachRun = [
  apiServer,
  nodeProgram,
  clusterDns,
  helm,
  goTemplate,
  goTemplates,
  goPeer,
  mergeOracle,
  consul,
];
// Programs that only nightly runs need.
const nightlyPrograms = [istioctl];
try {
  for (const program of [...programsOfEachRun, ...nightlyPrograms]) {
    if (names.length > 0 ? !names.includes(program.name) : nightlyPrograms.includes(program)) continue;
    const binary = await findOrBuild(program, (line) => console.error(line));
    console.error(`There is ${program.title}: ${binary}`);
  }
} catch (error) {
  console.error(explainError(error));
  process.exitCode = 1;
}
