/** `chartpilot diagram MACHINE`: draws a machine. */
import { Command, Option } from 'commander';
import type { CommandOutput } from '../../debugger/command-output.ts';
import type { DiagramCommandOptions } from '../../debugger/visualize/diagram-command.ts';

export function diagramCommand(output: CommandOutput): Command {
  return new Command('diagram')
    .summary('draw a state machine')
    .description(
      'Prints an XState machine as a mermaid diagram, a picture, data, or a table of states and events; without a machine it lists those that there are. ' +
        'Events that a state ignores are left out of diagrams and pictures; the table says what each state makes of each.\n\n' +
        'Exit code: 0 done, 2 a flag, a module, a machine or a trace is wrong.',
    )
    .argument('[machine]', "a machine of chartpilot's by name (supervisor, push, …), or a module's path")
    .option('--export <name>', "the machine's export (default: the default export, or the only machine)")
    .option('--from <trace>', 'take the machine from a trace: as it was when the trace was written')
    .addOption(
      new Option('--format <format>', 'what to print').choices(['mermaid', 'svg', 'json', 'table']).default('mermaid'),
    )
    .option('-o, --output <file>', 'where to write it (default: standard output)')
    .addOption(new Option('--open', 'show it in the browser instead, or all of them').conflicts(['format', 'output']))
    .addHelpText(
      'after',
      '\nExamples:\n  chartpilot diagram supervisor --format svg -o supervisor.svg\n' +
        '  chartpilot diagram ./checkout.machine.ts --export checkoutMachine\n' +
        '  chartpilot diagram epoch --from agent.trace',
    )
    .action(async (machine: string | undefined, options: DiagramCommandOptions) => {
      // Only here is the layout needed.
      const { drawDiagram } = await import('../../debugger/visualize/diagram-command.ts');
      await drawDiagram(machine, options, output);
    });
}
