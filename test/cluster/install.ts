/** `npm run cluster`: builds the programs of `npm test` in Go; with names: only these, also programs of nightly runs. */
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
// Programs of nightly runs alone.
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
