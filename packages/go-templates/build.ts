/**
 * `npm run go-templates`: builds `go-templates.wasm` into this folder, or copies it from the cache of an earlier build.
 */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { explainError } from '../../src/runtime/errors.ts';
import { findOrBuild, goTemplates } from '../../test/cluster/go-program.ts';

try {
  const built = await findOrBuild(goTemplates, (line) => console.error(line));
  const file = join(import.meta.dirname, 'go-templates.wasm');
  copyFileSync(built, file);
  console.error(`There is ${goTemplates.title}: ${file}`);
} catch (error) {
  console.error(explainError(error));
  process.exitCode = 1;
}
