/** `npm run cluster`: sees to it that the API server of the tests, Helm and Go's text/template are built; with names of them: these. */
import { explainError } from '../../src/runtime/errors.ts';
import { apiServer, findOrBuild, goTemplate, helm } from './go-program.ts';

const asked = process.argv.slice(2);
try {
  for (const program of [apiServer, helm, goTemplate]) {
    if (asked.length > 0 && !asked.includes(program.name)) continue;
    const binary = await findOrBuild(program, (line) => console.error(line));
    console.error(`There is ${program.title}: ${binary}`);
  }
} catch (error) {
  console.error(explainError(error));
  process.exitCode = 1;
}
