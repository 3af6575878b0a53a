/** `chartpilot`: the debugger's command line. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError, Option } from 'commander';
import { type CheckCommandOptions, checkTraces } from '../debugger/check-command.ts';
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
  return chartpilot;
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
