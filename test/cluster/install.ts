/** `npm run cluster`: sees to it that the API server of the tests is built. */
import { explainError } from '../../src/runtime/errors.ts';
import { findOrBuildApiServer } from './api-server-build.ts';

try {
  console.error(`The API server of the tests is there: ${await findOrBuildApiServer((line) => console.error(line))}`);
} catch (error) {
  console.error(explainError(error));
  process.exitCode = 1;
}
