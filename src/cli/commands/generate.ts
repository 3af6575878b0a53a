/** `chartpilot generate` (docs/generating-tests.md). */
import { Command, Option } from 'commander';
import type { CommandOutput } from '../../debugger/command-output.ts';
import type { GenerateCommandOptions } from '../../debugger/generate/generate-command.ts';
import { wholeNumber } from './whole-number.ts';

export function generateCommand(output: CommandOutput): Command {
  return new Command('generate')
    .summary('make tests of a state machine')
    .description(
      'Walks through an XState machine alone, in virtual time, and makes tests that cover its states, its transitions, or ' +
        'its paths. What the tests cover, and what not and why, is told on standard error.\n\n' +
        "The machine's module is executed with the rights of the user who runs this command, as are its imports and the samples. Use only modules that you trust.\n\n" +
        'Exit code: 0 tests were made, 1 there was nothing to test, 2 a flag, a module or a machine is wrong.',
    )
    .argument('<machine>', "a machine of chartpilot's by name (supervisor, epoch, cert-watcher, …), or a module's path")
    .option('--export <name>', "the machine's export (default: the default export, or the only machine)")
    .option('--samples <file>', 'module of sample payloads (default: NAME.samples.ts beside NAME.machine.ts)')
    .addOption(
      new Option('--cover <what>', 'what the tests go through')
        .choices(['states', 'transitions', 'paths'])
        .default('transitions'),
    )
    .option('--limit <n>', 'configurations looked at, and paths told, at most (default: 1000)', wholeNumber)
    .option('--depth <n>', 'steps in a test, at most (default: 30; of a path 8)', wholeNumber)
    .addOption(
      new Option('--format <format>', 'tests for vitest, for node:test, or data')
        .choices(['vitest', 'node', 'json'])
        .default('vitest'),
    )
    .option('-o, --output <file>', 'where to write the tests (default: standard output)')
    .option('--runtime <module>', 'what a vitest file imports the runtime from', 'chartpilot/machine-test')
    .addHelpText(
      'after',
      '\nExample:\n  chartpilot generate ./checkout.machine.ts --export checkoutMachine --output checkout.machine.test.ts',
    )
    .action(async (machine: string, options: GenerateCommandOptions) => {
      const { generateTests } = await import('../../debugger/generate/generate-command.ts');
      process.exitCode = await generateTests(machine, options, output);
    });
}
