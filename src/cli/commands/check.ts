/** `chartpilot check TRACE…`: holds traces against the sequence diagrams. */
import { Command, Option } from 'commander';
import { type CheckCommandOptions, checkTraces } from '../../debugger/check/check-command.ts';
import type { CommandOutput } from '../../debugger/command-output.ts';
import { wholeNumber } from './whole-number.ts';

/** @param output takes what is printed. Its action sets the process's exit code. */
export function checkCommand(output: CommandOutput): Command {
  return new Command('check')
    .summary('check traces against the sequence diagrams')
    .description(
      'Checks each trace against the sequence diagrams and shows every message that departs from them, with the record ' +
        "and the diagram's line. The rotated part of a trace (TRACE.1) is read first when it is of the same run.\n\n" +
        'Exit code: 0 all traces accepted, 1 a trace departs, 2 a file could not be read or a flag is wrong.',
    )
    .argument('<trace...>', 'trace files, each checked for itself; - is standard input')
    .option(
      '--diagrams <dir>',
      'folder of *.mmd files, or one file (default: those of the program that wrote the trace)',
    )
    .addOption(
      new Option('--format <format>', 'how to print the result; mermaid draws the messages around the first departure')
        .choices(['text', 'json', 'mermaid'])
        .default('text'),
    )
    .option('--around <n>', 'messages that mermaid shows before and after the first departure', wholeNumber, 20)
    .addHelpText(
      'after',
      '\nExample:\n  pilot-agent proxy sidecar --trace agent.trace …\n  chartpilot check agent.trace\n' +
        '  chartpilot check agent.trace --format mermaid > departure.mmd',
    )
    .action(async (traces: string[], options: CheckCommandOptions) => {
      process.exitCode = await checkTraces(traces, options, output);
    });
}
