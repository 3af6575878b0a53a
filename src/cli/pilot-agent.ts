import { successionExitCode } from '../../machines/agent/agent-upgrade/due-orders.ts';
import { endProgram } from '../runtime/output/standard-streams.ts';
import { proxyCommand } from './commands/proxy.ts';
import { commandFirst, pilotAgent } from './pilot-agent-commands.ts';
import { runProgram } from './run-program.ts';

/** Exit code of a failed set-up: Istio's −1. */
const setUpFailed = 255;

/** The launcher passes this word to start an agent that replaces an older one. It is a command because a program that does not know it exits. */
const successionWord = 'succeed';
const commandArgs = process.argv.slice(2);
const succeeds = commandArgs[0] === successionWord;
function giveUpBooting(): void {
  process.exitCode = successionExitCode;
  void endProgram();
}

/** Limits the time until the state machines of a newer agent run, which have their own timeouts. */
const bootLimit = succeeds ? setTimeout(giveUpBooting, 30_000) : undefined;

const succession = succeeds ? { booted: () => clearTimeout(bootLimit) } : undefined;
const program = pilotAgent(proxyCommand(succession));
const codes = { misused: setUpFailed, failed: () => setUpFailed };
await runProgram(program, codes, commandFirst(program, succeeds ? commandArgs.slice(1) : commandArgs));
