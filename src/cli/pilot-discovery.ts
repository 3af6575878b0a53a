import { discoveryCommand, normalizedArguments } from './commands/discovery.ts';
import { pilotDiscovery } from './pilot-discovery-commands.ts';
import { runProgram } from './run-program.ts';

const failureExitCode = 1;

await runProgram(
  pilotDiscovery(discoveryCommand()),
  { misused: failureExitCode, failed: () => failureExitCode },
  normalizedArguments(process.argv.slice(2)),
);
