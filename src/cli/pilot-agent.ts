import { successionExitCode } from '../../machines/agent/agent-upgrade/due-orders.ts';
import { endProgram } from '../runtime/output/standard-streams.ts';
import { proxyCommand } from './commands/proxy.ts';
import { commandFirst, pilotAgent } from './pilot-agent-commands.ts';
import { runProgram } from './run-program.ts';

/** Exit code of a failed set-up: Istio's −1. */
const setUpFailureCode = 255;

/**
 * The launcher passes this word to start an agent that replaces an older one. The word is a command, because an agent that does not know a command
 * exits.
 */
const successionCommand = 'succeed';
const commandArgs = process.argv.slice(2);
const isSuccessor = commandArgs[0] === successionCommand;
function exitOnBootTimeout(): void {
  process.exitCode = successionExitCode;
  void endProgram();
}

/** Limits the time until the state machines of a newer agent run, which have their own timeouts. */
const bootTimer = isSuccessor ? setTimeout(exitOnBootTimeout, 30_000) : undefined;

const succession = isSuccessor ? { booted: () => clearTimeout(bootTimer) } : undefined;
const program = pilotAgent(proxyCommand(succession));
const codes = { misused: setUpFailureCode, failed: () => setUpFailureCode };
await runProgram(program, codes, commandFirst(program, isSuccessor ? commandArgs.slice(1) : commandArgs));
