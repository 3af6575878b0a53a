import { Command, Option } from 'commander';
import { type CheckCommandOptions, checkTraces } from '../../debugger/check/check-command.ts';
import type { CommandOutput } from '../../debugger/command-output.ts';
import { nonNegativeInteger } from '../flags/non-negative-integer.ts';
import { addHelpSections } from './help-sections.ts';

export function checkCommand(output: CommandOutput): Command {
  const command = new Command('check')
    .summary('Check traces against the sequence diagrams')
    .description(
      'Check each trace against the sequence diagrams and report every message that deviates from them, with the record ' +
        'and the line of the diagram. The rotated part of a trace (TRACE.1) is read first if it belongs to the same run.',
    )
    .argument('<trace...>', 'Trace files, checked one by one; - is standard input')
    .option(
      '--diagrams <dir>',
      'Diagrams: a directory of *.mmd files, or one file (default those of the program that wrote the trace)',
    )
    .addOption(
      new Option('--format <format>', 'Output format; mermaid draws the messages around the first deviation')
        .choices(['text', 'json', 'mermaid'])
        .default('text'),
    )
    .option('--around <n>', 'Messages before and after the deviation in mermaid output', nonNegativeInteger, 20);
  return addHelpSections(command, {
    examples: ['chartpilot check agent.trace', 'chartpilot check agent.trace --format mermaid > deviation.mmd'],
    exitCodes: [
      ['0', 'all traces match the diagrams'],
      ['1', 'a trace deviates'],
      ['2', 'unreadable file or invalid flag'],
    ],
  }).action(async (traces: string[], options: CheckCommandOptions) => {
    process.exitCode = await checkTraces(traces, options, output);
  });
}
