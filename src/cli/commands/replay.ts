/** `chartpilot replay TRACE…`: do the machines of today do what was recorded? */
import { Command, Option } from 'commander';
import type { CommandOutput } from '../../debugger/command-output.ts';
import type { ReplayCommandOptions } from '../../debugger/replay/replay-command.ts';

/** @param output takes what is printed. Its action sets the process's exit code. */
export function replayCommand(output: CommandOutput): Command {
  return new Command('replay')
    .summary('replay traces and compare')
    .description(
      'Gives what came from outside in a trace to the machines once more, in virtual time, and compares what they do with ' +
        'what was recorded. The first difference is shown. The effects of the machines do not happen: no process, no file, no connection.\n\n' +
        'With --machine: the module is executed with the rights of the user who runs this command, as are its imports. Use only modules that you trust.\n\n' +
        'Exit code: 0 no difference, 1 a difference, 2 a trace cannot be read or replayed, or a flag is wrong.',
    )
    .argument('<trace...>', 'trace files, each replayed for itself; - is standard input')
    .addOption(
      new Option(
        '--machine <module>',
        "MODULE#EXPORT: root machine of your program, or what takes the place of the program's machine with the same id; " +
          'may be given several times',
      ).argParser((value: string, given: readonly string[] = []) => [...given, value]),
    )
    .addOption(new Option('--format <format>', 'how to print the result').choices(['text', 'json']).default('text'))
    .addHelpText(
      'after',
      '\nExample:\n  chartpilot replay agent.trace\n' +
        '  chartpilot replay agent.trace --machine ./supervisor.machine.ts#supervisorMachine',
    )
    .action(async (traces: string[], options: ReplayCommandOptions) => {
      // Only here are all machines needed.
      const { replayTraces } = await import('../../debugger/replay/replay-command.ts');
      process.exitCode = await replayTraces(traces, options, output);
    });
}
