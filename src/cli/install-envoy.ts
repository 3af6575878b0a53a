import { findEnvoy, installEnvoy } from '../agent/envoy/envoy-binary.ts';
import { explainError } from '../runtime/errors.ts';
import { endProgram, standardError } from '../runtime/output/standard-streams.ts';

const say = (line: string): void => standardError.write(`${line}\n`);

try {
  const found = findEnvoy({ env: process.env });
  if (found !== undefined) say(`Envoy: ${found.path} (found by ${found.by})`);
  else await installEnvoy({ env: process.env, progress: say });
} catch (error) {
  say(explainError(error));
  process.exitCode = 1;
}
await endProgram();
