/** `pilot-agent`: the sidecar's entrypoint (spec/agent.md §1). */
import { successionExitCode } from '../../machines/agent/replacement/due-orders.ts';
import { endProgram } from '../runtime/output/standard-streams.ts';
import { proxyCommand } from './commands/proxy.ts';
import { commandFirst, pilotAgent } from './pilot-agent-commands.ts';
import { runProgram } from './run-program.ts';

/** A set-up that cannot work. The reference's −1. */
const setUpFailed = 255;

/**
 * By this word the launcher starts an agent that is to take the place of an older one. A command, not a flag or a variable: a program that
 * does not know it ends, and would otherwise end what it finds running.
 */
const successionWord = 'succeed';
const words = process.argv.slice(2);
const succeeds = words[0] === successionWord;
function giveUpBooting(): void {
  process.exitCode = successionExitCode;
  void endProgram();
}

/** Until a newer agent has charts, which have limits: one that waits for an address or a download is not waited for. */
const bootLimit = succeeds ? setTimeout(giveUpBooting, 30_000) : undefined;

const succession = succeeds ? { booted: () => clearTimeout(bootLimit) } : undefined;
const program = pilotAgent(proxyCommand(succession));
const codes = { misused: setUpFailed, failed: () => setUpFailed };
await runProgram(program, codes, commandFirst(program, succeeds ? words.slice(1) : words));
