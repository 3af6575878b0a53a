import { findEnvoy, installEnvoy } from '../agent/envoy/envoy-binary.ts';
import { explainError } from '../runtime/errors.ts';
import { endProgram, standardError } from '../runtime/output/standard-streams.ts';

const print = (line: string): void => standardError.write(`${line}\n`);

try {
  const envoyPath = findEnvoy({ env: process.env });
  if (envoyPath !== undefined) print(`Envoy: ${envoyPath.path} (found.source ${envoyPath.source})`);
  else await installEnvoy({ env: process.env, progress: print });
} catch (error) {
  print(explainError(error));
  process.exitCode = 1;
}
await endProgram();
