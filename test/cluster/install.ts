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

const asked = process.argv.slice(2);
const ofEachRun = [apiServer, nodeProgram, clusterDns, helm, goTemplate, goTemplates, goPeer, mergeOracle, consul];
// Programs that only nightly runs need.
const others = [istioctl];
try {
  for (const program of [...ofEachRun, ...others]) {
    if (asked.length > 0 ? !asked.includes(program.name) : others.includes(program)) continue;
    const binary = await findOrBuild(program, (line) => console.error(line));
    console.error(`There is ${program.title}: ${binary}`);
  }
} catch (error) {
  console.error(explainError(error));
  process.exitCode = 1;
}
