import { Command, InvalidArgumentError, Option } from 'commander';
import type { CommandOutput } from '../../debugger/command-output.ts';
import { printSummary } from '../../debugger/findings/summary-command.ts';
import type { SendOptions } from '../../debugger/otlp/send-otlp.ts';
import { printTrace, type TraceCommandOptions, type TraceOutput } from '../../debugger/trace/trace-command.ts';
import { recordKinds } from '../../debugger/trace/trace-line.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { standardOutput } from '../../runtime/output/standard-streams.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { nonNegativeInteger } from '../flags/non-negative-integer.ts';
import { addHelpSections } from './help-sections.ts';

/** Standard output is written at the speed of its reader. */
export function traceCommand(output: CommandOutput): Command {
  const command = new Command('trace')
    .summary('Print a trace, the cause of a record, or a summary')
    .description(
      'Print a trace, one record per line: number, milliseconds since the start of the program, event, and the number of the ' +
        'record that caused it. --why prints the chain of causes of one record; --summary prints restarts, losses, rejections and the end.',
    )
    .argument('[trace...]', 'Trace file; - is standard input; several only with --merge');
  command.optionsGroup('Filters:');
  command
    .option('--actor <name>', 'Only this actor and its effects; epoch-N is any epoch; repeatable', appendName)
    .option('--kind <kinds>', `Only these kinds of records, comma-separated (${recordKinds.join(', ')})`, kindsIn)
    .option('--from <seq>', 'First record', nonNegativeInteger)
    .option('--to <seq>', 'Last record', nonNegativeInteger);
  command.optionsGroup('Output:');
  command
    .option('--why <seq>', 'Print the chain of causes of this record', nonNegativeInteger)
    .option('--summary', 'Print a summary and the time of each phase')
    .option('--clock', 'Print times in UTC instead of milliseconds since the start')
    .option('--merge <file>', 'Merge traces of several programs into one file, with the messages between them')
    .addOption(
      new Option('--format <format>', 'Output format; json: one record per line')
        .choices(['text', 'json'])
        .default('text'),
    );
  command.optionsGroup('OpenTelemetry:');
  command
    .option('--otlp <address>', 'OTLP/HTTP endpoint or file for restarts and pushes as OpenTelemetry traces')
    .option('--attach <address>', 'With --otlp: running program on this host instead of a file')
    .option(
      '--token <token>',
      'With --attach: token of the program (default $CHARTPILOT_TOKEN, then its run directory)',
    )
    .option('--runDir <dir>', 'With --attach: run directory of the program');
  return addHelpSections(command, {
    examples: [
      'chartpilot trace agent.trace --clock --actor supervisor --kind transition',
      'chartpilot trace agent.trace --why 57',
      'chartpilot trace agent.trace --summary',
      'chartpilot trace agent.trace --otlp http://127.0.0.1:4318/v1/traces',
      'chartpilot trace --attach 127.0.0.1:15020 --otlp http://127.0.0.1:4318',
    ],
    environment: [
      ['CHARTPILOT_TOKEN', 'Token of the program, without --token'],
      ['OTEL_EXPORTER_OTLP_HEADERS', 'HTTP headers of OTLP requests: name=value,…'],
    ],
    exitCodes: [
      ['0', 'printed'],
      ['2', 'unreadable file or invalid flag'],
    ],
  }).action(
    async (paths: readonly string[], { summary, otlp, merge, attach, token, runDir, ...options }: TraceFlags) => {
      const traceOutput = { out: writeStdout, error: output.error };
      const headers = process.env.OTEL_EXPORTER_OTLP_HEADERS;
      const sendOptions = headers === undefined ? {} : { headers };
      rejectIgnoredFlags({ summary, otlp, merge, attach, token, runDir, ...options });
      if (attach !== undefined) return followTrace(paths, attach, { otlp, token, runDir }, traceOutput, sendOptions);
      if (paths.length === 0) throw new ChartpilotError('FLAG_INVALID', 'missing trace file');
      if (merge !== undefined) {
        const { mergeInto } = await import('../../debugger/merge/merge-command.ts');
        return mergeInto(merge, paths, traceOutput);
      }
      if (paths.length > 1) {
        throw new ChartpilotError(
          'FLAG_INVALID',
          `expected one trace, got ${paths.length}; only --merge FILE accepts several`,
        );
      }
      const [path = ''] = paths;
      if (otlp === undefined) return (summary === true ? printSummary : printTrace)(path, options, traceOutput);
      const { exportOtlp } = await import('../../debugger/otlp/otlp-command.ts');
      return exportOtlp(path, otlp, traceOutput, sendOptions);
    },
  );
}

async function followTrace(
  paths: readonly string[],
  attach: string,
  { otlp, token = process.env.CHARTPILOT_TOKEN, runDir }: Pick<TraceFlags, 'otlp' | 'token' | 'runDir'>,
  traceOutput: TraceOutput,
  sendOptions: SendOptions,
): Promise<void> {
  if (paths.length > 0 || otlp === undefined) {
    throw new ChartpilotError('FLAG_INVALID', '--attach requires --otlp ADDRESS and no trace file', {
      hint: 'to watch a running program, use chartpilot visualize --attach HOST:PORT',
    });
  }
  const { parseLiveAddress } = await import('../../debugger/visualize/live-address.ts');
  const { liveSource } = await import('../../debugger/visualize/live-source.ts');
  const { followOtlp } = await import('../../debugger/otlp/live-otlp.ts');
  const access = { ...(token && { token }), ...(runDir !== undefined && { runDir }) };
  return followOtlp(liveSource(parseLiveAddress(attach), access), otlp, traceOutput, sendOptions);
}

const printingFlags = ['actor', 'kind', 'from', 'to', 'why'] as const;

/** @throws ChartpilotError FLAG_INVALID for a flag that would be ignored */
function rejectIgnoredFlags(flags: TraceFlags): void {
  const mode = (['summary', 'otlp', 'merge'] as const).find((name) => flags[name] !== undefined);
  const ignoredFlag = mode === undefined ? undefined : printingFlags.find((name) => flags[name] !== undefined);
  if (ignoredFlag !== undefined) {
    throw new ChartpilotError(
      'FLAG_INVALID',
      `--${ignoredFlag} cannot be used with --${mode}, which reads the whole trace`,
    );
  }
  const liveFlag = (['token', 'runDir'] as const).find((name) => flags[name] !== undefined);
  if (flags.attach === undefined && liveFlag !== undefined) {
    throw new ChartpilotError('FLAG_INVALID', `--${liveFlag} requires --attach HOST:PORT`);
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

function appendName(name: string, names: readonly string[] = []): readonly string[] {
  return [...names, name];
}

function kindsIn(text: string, previousKinds: readonly TraceRecord['kind'][] = []): readonly TraceRecord['kind'][] {
  const kinds = text.split(',').map((kind) => {
    const recordKind = recordKinds.find((candidate) => candidate === kind.trim());
    if (recordKind === undefined) throw new InvalidArgumentError(`Unknown record kind '${kind}'.`);
    return recordKind;
  });
  return [...previousKinds, ...kinds];
}

async function writeStdout(text: string): Promise<void> {
  standardOutput.print(text);
  await standardOutput.waitUntilEmpty();
}
