/** `chartpilot visualize`: shows a restart, live and backwards. */
import { Command, InvalidArgumentError } from 'commander';
import type { CommandOutput } from '../../debugger/command-output.ts';
import type { VisualizeCommandOptions } from '../../debugger/visualize/visualize-command.ts';

export function visualizeCommand(output: CommandOutput): Command {
  return new Command('visualize')
    .summary('show traces and running programs in a browser')
    .description(
      'Serves a page on loopback that shows statecharts, the sequence of messages and a timeline of each trace, and of each ' +
        'program that runs: as it goes, and backwards. Prints the address; ends with Ctrl-C.\n\n' +
        'Exit code: 0 ended by the person, or the page is written; 2 a trace cannot be had, the port is in use, or a flag is wrong.',
    )
    .argument('[trace...]', 'trace files (--trace of pilot-agent and pilot-discovery)')
    .option(
      '-a, --attach <address>',
      'a program that runs on this host, HOST:PORT or PORT: --statusPort of pilot-agent, --monitoringAddr of ' +
        'pilot-discovery; may be given again',
      (address: string, before: readonly string[] | undefined) => [...(before ?? []), address],
    )
    .option(
      '--token <token>',
      "what the programs ask for (default: CHARTPILOT_TOKEN, or what they left in their user's run directory)",
    )
    .option('--runDir <dir>', 'where they left it, if they were started with --runDir')
    .option('--diagrams <dir>', 'sequence diagrams to hold the traces against (default: those of the program)')
    .option('--port <port>', 'port of the page (default: a free one)', portNumber)
    .option('--open', 'open the page in the browser')
    .option(
      '-o, --output <file>',
      'write one HTML file with everything in it instead; of a live program what there is now',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  chartpilot visualize agent.trace\n  chartpilot visualize --attach 15020\n' +
        '  chartpilot visualize agent.trace --output restart.html',
    )
    .action(async (traces: string[], options: VisualizeCommandOptions) => {
      const { visualize } = await import('../../debugger/visualize/visualize-command.ts');
      await visualize(traces, options, output);
    });
}

function portNumber(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError('It is no port: 0 to 65535, 0 for a free one.');
}
