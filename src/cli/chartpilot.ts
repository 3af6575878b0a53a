/** `chartpilot`: the debugger's command line. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError, Option } from 'commander';
import type { ExploreCommandOptions } from '../debugger/explore/explore-command.ts';
import type { GenerateCommandOptions } from '../debugger/generate/generate-command.ts';
import { ChartpilotError, explainError, isSystemError } from '../runtime/errors.ts';
import { packageRoot } from '../runtime/package-root.ts';
import { checkCommand } from './commands/check.ts';
import { replayCommand } from './commands/replay.ts';
import { traceCommand } from './commands/trace.ts';
import { visualizeCommand } from './commands/visualize.ts';
import { wholeNumber } from './commands/whole-number.ts';

const output = {
  out: (text: string) => void process.stdout.write(text),
  error: (text: string) => void process.stderr.write(text),
};

function version(): string {
  return (JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string }).version;
}

function program(): Command {
  const chartpilot = new Command('chartpilot')
    .description('Debugger of pilot-agent and pilot-discovery: reads the traces that they write with --trace FILE.')
    .version(version())
    .showHelpAfterError("(run 'chartpilot --help' or 'chartpilot COMMAND --help')")
    .exitOverride();
  for (const command of [visualizeCommand(output), checkCommand(output), traceCommand(output), replayCommand(output)]) {
    // addCommand does not, unlike command(): a wrong flag would end the process with another exit code.
    chartpilot.addCommand(command.copyInheritedSettings(chartpilot));
  }
  chartpilot
    .command('explore')
    .summary('explore every state of the agent within bounds')
    .description(
      "Runs pilot-agent's statecharts with simulated Envoys through everything that may happen within the bounds, in every " +
        'order, and checks that nothing happens that must not. A violation is shown as the shortest list of choices that ' +
        'leads to it.\n\n' +
        'Exit code: 0 nothing is wrong in what was seen, 1 a violation, 2 a flag is wrong.',
    )
    .option('--triggers <n>', 'changed certificates and SIGHUPs in a run', wholeNumber, 2)
    .option('--faults <n>', 'crashes, refused bootstraps, failed spawns and hanging processes in a run', wholeNumber, 2)
    .option('--stop [n]', 'a run may hold a SIGTERM, or n of them (at most 2)', wholeNumber)
    .option('--exact-times', 'tell states apart by the times between deadlines, not only by their order')
    .option('--limit <states>', 'give up after so many states', wholeNumber)
    .option('--minutes <n>', 'give up after so long', wholeNumber)
    .option('--trace <file>', 'write the run that leads to a violation as a trace')
    .addOption(new Option('--format <format>', 'how to print the result').choices(['text', 'json']).default('text'))
    .action(async (options: ExploreFlags) => {
      // Only here is the simulation needed.
      const { exploreAgent } = await import('../../test/simulation/explore-agent.ts');
      const { exploreWithin } = await import('../debugger/explore/explore-command.ts');
      const { triggers, faults, stop = 0, exactTimes = false } = options;
      const stops = Math.min(2, Number(stop)) as 0 | 1 | 2;
      process.exitCode = exploreWithin(exploreAgent({ triggers, faults, stops }, { exactTimes }), options, output);
    });
  chartpilot
    .command('generate')
    .summary('make tests of a state machine')
    .description(
      'Walks through an XState machine alone, in virtual time, and makes tests that cover its states, its transitions, or ' +
        'its paths. What the tests cover, and what not and why, is told on standard error.\n\n' +
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
    .addOption(new Option('--format <format>', 'what to print').choices(['vitest', 'json']).default('vitest'))
    .option('-o, --output <file>', 'where to write the tests (default: standard output)')
    .option('--runtime <module>', 'what a vitest file imports the runtime from', 'chartpilot/machine-test')
    .addHelpText(
      'after',
      '\nExample:\n  chartpilot generate ./checkout.machine.ts --export checkoutMachine --output checkout.machine.test.ts',
    )
    .action(async (machine: string, options: GenerateCommandOptions) => {
      const { generateTests } = await import('../debugger/generate/generate-command.ts');
      process.exitCode = await generateTests(machine, options, output);
    });
  return chartpilot;
}

interface ExploreFlags extends ExploreCommandOptions {
  readonly triggers: number;
  readonly faults: number;
  /** `true` without a number: one. */
  readonly stop?: number | true;
  readonly exactTimes?: boolean;
}

// The reader of a pipe may leave (`chartpilot trace x | head`).
process.stdout.on('error', (error) => {
  if (isSystemError(error, 'EPIPE')) process.exit();
  throw error;
});
try {
  await program().parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has told the person; help and version that were asked for are no error.
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  } else {
    output.error(`chartpilot: ${explainError(error)}\n`);
    process.exitCode = error instanceof ChartpilotError ? 2 : 70;
  }
}
