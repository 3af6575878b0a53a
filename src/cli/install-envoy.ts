/** `npm run envoy`: sees to it that there is an Envoy on this machine. */
import { findEnvoy, installEnvoy } from '../agent/envoy-binary.ts';
import { explainError } from '../runtime/errors.ts';

try {
  const found = findEnvoy({ env: process.env });
  if (found !== undefined) console.error(`Envoy is there: ${found.path} (found by ${found.by})`);
  else await installEnvoy({ env: process.env, progress: (line) => console.error(line) });
} catch (error) {
  console.error(explainError(error));
  process.exitCode = 1;
}
