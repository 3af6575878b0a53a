import { Command, Option } from 'commander';
import type { CommandOutput } from '../../debugger/command-output.ts';
import type { DiagramCommandOptions } from '../../debugger/visualize/diagram-command.ts';
import { addHelpSections } from './help-sections.ts';

export function diagramCommand(output: CommandOutput): Command {
  const command = new Command('diagram')
    .summary('Print a state machine as a diagram')
    .description(
      'Print an XState machine as a mermaid diagram, an SVG image, JSON, or a table of states and events. Without a machine, list ' +
        'the machines of chartpilot. Diagrams omit events that a state ignores; the table shows every event in every state.',
    )
    .argument('[machine]', 'Name of a machine of chartpilot (supervisor, push, …), or path of a module')
    .option('--export <name>', 'Export of the module (default the default export, or the only machine)')
    .option('--from <trace>', 'Read the machine from a trace, as it was recorded')
    .addOption(
      new Option('--format <format>', 'Output format').choices(['mermaid', 'svg', 'json', 'table']).default('mermaid'),
    )
    .option('-o, --output <file>', 'Output file (default standard output)')
    .addOption(new Option('--open', 'Open the machine, or all, in the browser').conflicts(['format', 'output']));
  return addHelpSections(command, {
    examples: [
      'chartpilot diagram supervisor --format svg -o supervisor.svg',
      'chartpilot diagram ./checkout.machine.ts --export checkoutMachine',
      'chartpilot diagram epoch --from agent.trace',
    ],
    exitCodes: [
      ['0', 'diagram printed'],
      ['2', 'invalid flag, module, machine or trace'],
    ],
  }).action(async (machine: string | undefined, options: DiagramCommandOptions) => {
    // Loaded on demand, because it includes the layout engine.
    const { drawDiagram } = await import('../../debugger/visualize/diagram-command.ts');
    await drawDiagram(machine, options, output);
  });
}
