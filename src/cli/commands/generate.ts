import { Command, Option } from 'commander';
import type { CommandOutput } from '../../debugger/command-output.ts';
import type { GenerateCommandOptions } from '../../debugger/generate/generate-command.ts';
import { nonNegativeInteger } from '../flags/non-negative-integer.ts';
import { addHelpSections } from './help-sections.ts';

export function generateCommand(output: CommandOutput): Command {
  const command = new Command('generate')
    .summary('Generate tests of a state machine')
    .description(
      'Generate tests that cover the states, transitions or paths of an XState machine. The machine is run alone, in virtual ' +
        'time; coverage is reported on standard error. ' +
        'The module, its imports and its samples run with your rights: use only modules that you trust.',
    )
    .argument('<machine>', 'Name of a machine of chartpilot (supervisor, epoch, cert-watcher, …), or path of a module')
    .option('--export <name>', 'Export of the module (default the default export, or the only machine)')
    .option('--samples <file>', 'Module of sample payloads (default NAME.samples.ts beside NAME.machine.ts)')
    .addOption(
      new Option('--cover <what>', 'Coverage').choices(['states', 'transitions', 'paths']).default('transitions'),
    )
    .option('--limit <n>', 'Maximum number of configurations and paths (default 1000)', nonNegativeInteger)
    .option('--depth <n>', 'Maximum number of steps in a test (default 30; of a path 8)', nonNegativeInteger)
    .addOption(new Option('--format <format>', 'Output format').choices(['vitest', 'node', 'json']).default('vitest'))
    .option('-o, --output <file>', 'Output file (default standard output)')
    .option('--runtime <module>', 'Module that vitest tests import the runtime from', 'chartpilot/machine-test');
  return addHelpSections(command, {
    examples: ['chartpilot generate ./checkout.machine.ts --export checkoutMachine --output checkout.machine.test.ts'],
    exitCodes: [
      ['0', 'tests generated'],
      ['1', 'nothing to test'],
      ['2', 'invalid flag, module or machine'],
    ],
  }).action(async (machine: string, options: GenerateCommandOptions) => {
    const { generateTests } = await import('../../debugger/generate/generate-command.ts');
    process.exitCode = await generateTests(machine, options, output);
  });
}
