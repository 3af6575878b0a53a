import { Command, Option } from 'commander';
import type { CommandOutput } from '../../debugger/command-output.ts';
import type { ReplayCommandOptions } from '../../debugger/replay/replay-command.ts';
import { addHelpSections } from './help-sections.ts';

export function replayCommand(output: CommandOutput): Command {
  const command = new Command('replay')
    .summary('Replay traces and compare')
    .description(
      'Send the external inputs of a trace to the current machines, in virtual time, and compare their behaviour with the ' +
        'recorded one. The first difference is printed. No effect is executed: no process, file or connection is opened. ' +
        'With --machine, the module and its imports run with your rights: use only modules that you trust.',
    )
    .argument('<trace...>', 'Trace files, replayed one by one; - is standard input')
    .addOption(
      new Option(
        '--machine <module>',
        'MODULE#EXPORT: root machine, or replacement of a machine with the same id; repeatable',
      ).argParser((value: string, previousValues: readonly string[] = []) => [...previousValues, value]),
    )
    .addOption(new Option('--format <format>', 'Output format').choices(['text', 'json']).default('text'));
  return addHelpSections(command, {
    examples: [
      'chartpilot replay agent.trace',
      'chartpilot replay agent.trace --machine ./supervisor.machine.ts#supervisorMachine',
    ],
    exitCodes: [
      ['0', 'no difference'],
      ['1', 'a difference'],
      ['2', 'invalid flag, or a trace that cannot be read or replayed'],
    ],
  }).action(async (traces: string[], options: ReplayCommandOptions) => {
    // Loaded on demand, because it includes all machines.
    const { replayTraces } = await import('../../debugger/replay/replay-command.ts');
    process.exitCode = await replayTraces(traces, options, output);
  });
}
