import { Command, InvalidArgumentError } from 'commander';
import type { CommandOutput } from '../../debugger/command-output.ts';
import type { VisualizeCommandOptions } from '../../debugger/visualize/visualize-command.ts';
import { addHelpSections } from './help-sections.ts';

export function visualizeCommand(output: CommandOutput): Command {
  const command = new Command('visualize')
    .summary('Show traces and running programs in the browser')
    .description(
      'Serve a page on loopback that shows the statecharts, messages and timeline of traces and of running programs. Prints its address; ' +
        'Ctrl-C stops it.',
    )
    .argument('[trace...]', 'Trace files of pilot-agent and pilot-discovery')
    .option(
      '-a, --attach <address>',
      'Running program on this host: HOST:PORT or PORT of --statusPort (pilot-agent) or --monitoringAddr (pilot-discovery); repeatable',
      (address: string, previousValues: readonly string[] | undefined) => [...(previousValues ?? []), address],
    )
    .option(
      '--token <token>',
      'Token of the programs (default $CHARTPILOT_TOKEN, then their run directories); repeat it for each --attach, in their order',
      (token: string, previousValues: readonly string[] | undefined) => [...(previousValues ?? []), token],
    )
    .option('--runDir <dir>', 'Run directory of programs that were started with --runDir')
    .option('--diagrams <dir>', 'Sequence diagrams to check against (default those of the program)')
    .option('--port <port>', 'Port of the page (default a free one)', portNumber)
    .option('--open', 'Open the page in the browser')
    .option(
      '-o, --output <file>',
      'Write one self-contained HTML file instead; of a running program, its records so far',
    );
  return addHelpSections(command, {
    examples: [
      'chartpilot visualize agent.trace',
      'chartpilot visualize --attach 15020',
      'chartpilot visualize agent.trace --output restart.html',
    ],
    environment: [['CHARTPILOT_TOKEN', 'Token of the programs, without --token']],
    exitCodes: [
      ['0', 'stopped, or file written'],
      ['2', 'unreadable trace, port in use, or invalid flag'],
    ],
  }).action(async (traces: string[], options: VisualizeCommandOptions) => {
    const { visualize } = await import('../../debugger/visualize/visualize-command.ts');
    await visualize(traces, options, output);
  });
}

function portNumber(text: string): number {
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new InvalidArgumentError('Must be a port: 0 to 65535; 0 selects a free one.');
}
