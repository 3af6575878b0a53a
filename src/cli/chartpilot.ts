/** `chartpilot`: the debugger's command line. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { type CheckCommandOptions, checkTraces } from '../debugger/check-command.ts';
import type { ExploreCommandOptions } from '../debugger/explore/explore-command.ts';
import type { GenerateCommandOptions } from '../debugger/generate/generate-command.ts';
import { formatRecord } from '../debugger/print-trace.ts';
import { openTrace } from '../debugger/read-trace.ts';
import { ChartpilotError, explainError, isSystemError } from '../runtime/errors.ts';
import { packageRoot } from '../runtime/package-root.ts';

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
  chartpilot
    .command('check')
    .summary('check traces against the sequence diagrams')
    .description(
      'Checks each trace against the sequence diagrams and shows every message that departs from them, with the record ' +
        "and the diagram's line. The rotated part of a trace (TRACE.1) is read first when it is of the same run.\n\n" +
        'Exit code: 0 all traces accepted, 1 a trace departs, 2 a file could not be read or a flag is wrong.',
    )
    .argument('<trace...>', 'trace files, each checked for itself')
    .option(
      '--diagrams <dir>',
      'folder of *.mmd files, or one file (default: those of the program that wrote the trace)',
    )
    .addOption(new Option('--format <format>', 'how to print the result').choices(['text', 'json']).default('text'))
    .addHelpText(
      'after',
      '\nExample:\n  pilot-agent proxy sidecar --trace agent.trace …\n  chartpilot check agent.trace',
    )
    .action(async (traces: string[], options: CheckCommandOptions) => {
      process.exitCode = await checkTraces(traces, options, output);
    });
  chartpilot
    .command('trace')
    .summary('print a trace for reading')
    .description(
      'Prints a trace, one record a line: its number, milliseconds since the program started, and what happened.',
    )
    .argument('<trace>', 'trace file')
    .action(async (path: string) => {
      const reading = await openTrace(path);
      for await (const record of reading.records) {
        if (!process.stdout.write(`${formatRecord(record)}\n`)) await once(process.stdout, 'drain');
      }
      const cutOff = reading.cutOff();
      if (cutOff !== undefined) output.error(`${cutOff}: the last line is half written\n`);
    });
  chartpilot
    .command('explore')
    .summary('explore every state of the agent within bounds')
    .description(
      "Runs pilot-agent's statecharts with simulated Envoys through everything that may happen within the bounds, in every " +
        'order, and checks that nothing happens that must not. A violation is shown as the shortest list of choices that ' +
        'leads to it.\n\n' +
        'Exit code: 0 nothing is wrong in what was seen, 1 a violation, 2 a flag is wrong.',
    )
    .option('--triggers <n>', 'changed certificates and SIGHUPs in a run', count, 2)
    .option('--faults <n>', 'crashes, refused bootstraps, failed spawns and hanging processes in a run', count, 2)
    .option('--stop [n]', 'a run may hold a SIGTERM, or n of them (at most 2)', count)
    .option('--exact-times', 'tell states apart by the times between deadlines, not only by their order')
    .option('--limit <states>', 'give up after so many states', count)
    .option('--minutes <n>', 'give up after so long', count)
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
    .option('--limit <n>', 'configurations looked at, and paths told, at most (default: 1000)', count)
    .option('--depth <n>', 'steps in a test, at most (default: 30; of a path 8)', count)
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

function count(text: string): number {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('It is not a whole number.');
  return Number(text);
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
