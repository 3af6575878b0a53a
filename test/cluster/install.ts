/** `npm run cluster`: builds the API server and the node of the tests, Helm, Go's text/template and Consul; with names: only these. */
import { explainError } from '../../src/runtime/errors.ts';
import {
  apiServer,
  clusterDns,
  consul,
  findOrBuild,
  goPeer,
  goTemplate,
  helm,
  mergeOracle,
  nodeProgram,
} from './go-program.ts';

const asked = process.argv.slice(2);
try {
  for (const program of [apiServer, nodeProgram, clusterDns, helm, goTemplate, goPeer, mergeOracle, consul]) {
    if (asked.length > 0 && !asked.includes(program.name)) continue;
    const binary = await findOrBuild(program, (line) => console.error(line));
    console.error(`There is ${program.title}: ${binary}`);
  }
} catch (error) {
  console.error(explainError(error));
  process.exitCode = 1;
}
