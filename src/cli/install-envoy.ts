import { findEnvoy, installEnvoy } from '../agent/envoy/envoy-binary.ts';
import { explainError } from '../runtime/errors.ts';
import { endProgram, standardError } from '../runtime/output/standard-streams.ts';

const print = (line: string): void => standardError.write(`${line}\n`);

try {
  const foundEnvoy = findEnvoy({ env: process.env });
  if (foundEnvoy !== undefined) print(`Envoy: ${foundEnvoy.path} (found.source ${foundEnvoy.source})`);
  else await installEnvoy({ env: process.env, progress: print });
} catch (error) {
  print(explainError(error));
  process.exitCode = 1;
}
await endProgram();
