/** `chartpilot trace TRACE`: prints a trace for reading. */
import { Command, InvalidArgumentError, Option } from 'commander';
import type { CommandOutput } from '../../debugger/command-output.ts';
import type { SendOptions } from '../../debugger/otlp/send-otlp.ts';
import { printTrace, type TraceCommandOptions, type TraceOutput } from '../../debugger/trace/trace-command.ts';
import { recordKinds } from '../../debugger/trace/trace-line.ts';
import { printSummary } from '../../debugger/verdicts/summary-command.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { standardOutput } from '../../runtime/output/standard-streams.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { wholeNumber } from './whole-number.ts';

/** Records go to standard output, no faster than its reader takes them; errors to `output`. */
export function traceCommand(output: CommandOutput): Command {
  return new Command('trace')
    .summary('print a trace for reading, why something happened, or what it comes to')
    .description(
      'Prints a trace, one record a line: its number, milliseconds since the program started, what happened, and the number ' +
        'of the record that caused it. With --why, the chain of causes of one record; with --summary, what all of it comes to, ' +
        'a sentence each.\n\n' +
        'Exit code: 0 printed, 2 the file could not be read or a flag is wrong.',
    )
    .argument('[trace...]', 'trace file; - is standard input; several only with --merge')
    .option('--actor <name>', 'only this actor and its effects; epoch-N is any epoch; may be repeated', another)
    .option('--kind <kinds>', `only these kinds of records, with commas (${recordKinds.join(', ')})`, kindsIn)
    .option('--from <seq>', 'begin with this record', wholeNumber)
    .option('--to <seq>', 'end with this record', wholeNumber)
    .option('--why <seq>', 'print why this record happened, back to where it began', wholeNumber)
    .option('--summary', 'print what the trace comes to: restarts, losses, refusals, the end; and where the time went')
    .option('--clock', 'times of the clock (UTC) instead of milliseconds since the start')
    .option('--merge <file>', 'write several traces as one: programs on one axis, with the arrows between them')
    .option(
      '--otlp <address>',
      'send restarts and pushes as OpenTelemetry traces (OTLP/HTTP), or write them into a file',
    )
    .option('--attach <address>', 'with --otlp: a running program on this host instead of a file, until it ends')
    .option(
      '--token <token>',
      'with --attach: what the program asks for; CHARTPILOT_TOKEN, or found by itself for its own user',
    )
    .option('--runDir <dir>', 'with --attach: where the program left its token, if it was started with --runDir')
    .addOption(
      new Option('--format <format>', 'json: one record a line, as in the file')
        .choices(['text', 'json'])
        .default('text'),
    )
    .addHelpText(
      'after',
      '\nExample:\n  chartpilot trace agent.trace --clock --actor supervisor --kind transition\n  chartpilot trace agent.trace --why 57\n  chartpilot trace agent.trace --summary\n' +
        '  chartpilot trace agent.trace --otlp http://127.0.0.1:4318/v1/traces\n' +
        '  chartpilot trace --attach 127.0.0.1:15020 --otlp http://127.0.0.1:4318',
    )
    .action(
      async (paths: readonly string[], { summary, otlp, merge, attach, token, runDir, ...options }: TraceFlags) => {
        const to = { out: printOut, error: output.error };
        const headers = process.env.OTEL_EXPORTER_OTLP_HEADERS;
        const sending = headers === undefined ? {} : { headers };
        mustGoTogether({ summary, otlp, merge, attach, token, runDir, ...options });
        if (attach !== undefined) return follow(paths, attach, { otlp, token, runDir }, to, sending);
        if (paths.length === 0) throw new ChartpilotError('FLAG_INVALID', 'no trace file is given');
        if (merge !== undefined) {
          const { mergeInto } = await import('../../debugger/merge/merge-command.ts');
          return mergeInto(merge, paths, to);
        }
        if (paths.length > 1) {
          throw new ChartpilotError(
            'FLAG_INVALID',
            `${paths.length} traces are given; several are for --merge FILE only`,
          );
        }
        const [path = ''] = paths;
        if (otlp === undefined) return (summary === true ? printSummary : printTrace)(path, options, to);
        const { exportOtlp } = await import('../../debugger/otlp/otlp-command.ts');
        return exportOtlp(path, otlp, to, sending);
      },
    );
}

async function follow(
  paths: readonly string[],
  attach: string,
  { otlp, token = process.env.CHARTPILOT_TOKEN, runDir }: Pick<TraceFlags, 'otlp' | 'token' | 'runDir'>,
  to: TraceOutput,
  sending: SendOptions,
): Promise<void> {
  if (paths.length > 0 || otlp === undefined) {
    throw new ChartpilotError('FLAG_INVALID', '--attach is for --otlp ADDRESS, and instead of a file', {
      hint: 'To watch a running program: chartpilot visualize --attach HOST:PORT.',
    });
  }
  const { parseLiveAddress } = await import('../../debugger/visualize/live-address.ts');
  const { liveSource } = await import('../../debugger/visualize/live-source.ts');
  const { followOtlp } = await import('../../debugger/otlp/live-otlp.ts');
  const asked = { ...(token && { token }), ...(runDir !== undefined && { runDir }) };
  return followOtlp(liveSource(parseLiveAddress(attach), asked), otlp, to, sending);
}

/** Flags that choose records of a file that is printed, and mean nothing to the other ways to look at it. */
const ofPrinting = ['actor', 'kind', 'from', 'to', 'why'] as const;

/** @throws ChartpilotError FLAG_INVALID for a flag that would be ignored */
function mustGoTogether(flags: TraceFlags): void {
  const way = (['summary', 'otlp', 'merge'] as const).find((name) => flags[name] !== undefined);
  const ignored = way === undefined ? undefined : ofPrinting.find((name) => flags[name] !== undefined);
  if (ignored !== undefined) {
    throw new ChartpilotError(
      'FLAG_INVALID',
      `--${ignored} means nothing with --${way}, which is about all of a trace`,
    );
  }
  const live = (['token', 'runDir'] as const).find((name) => flags[name] !== undefined);
  if (flags.attach === undefined && live !== undefined) {
    throw new ChartpilotError('FLAG_INVALID', `--${live} is for --attach HOST:PORT`);
  }
}

interface TraceFlags extends TraceCommandOptions {
  readonly summary?: true | undefined;
  readonly otlp?: string | undefined;
  readonly merge?: string | undefined;
  readonly attach?: string | undefined;
  readonly token?: string | undefined;
  readonly runDir?: string | undefined;
}

function another(name: string, names: readonly string[] = []): readonly string[] {
  return [...names, name];
}

function kindsIn(text: string, before: readonly TraceRecord['kind'][] = []): readonly TraceRecord['kind'][] {
  const kinds = text.split(',').map((kind) => {
    const known = recordKinds.find((candidate) => candidate === kind.trim());
    if (known === undefined) throw new InvalidArgumentError(`No record has the kind '${kind}'.`);
    return known;
  });
  return [...before, ...kinds];
}

async function printOut(text: string): Promise<void> {
  standardOutput.print(text);
  await standardOutput.empty();
}
