import { ChartpilotError } from '../../runtime/errors.ts';
import { type Statechart, statechartOf } from '../../runtime/trace/statechart.ts';
import { formatTraceLine, traceVersion } from '../../runtime/trace/trace.ts';
import { visibleLine, visibleText } from '../../runtime/visible-text.ts';
import type { CommandOutput } from '../command-output.ts';
import { chartOf } from '../statechart/charts.ts';

import { formatEventTable } from '../statechart/event-table.ts';
import { formatMermaid } from '../statechart/mermaid.ts';
import { findMachine, namedMachines } from '../statechart/named-machines.ts';
import { openTrace } from '../trace/read-trace.ts';
import { writeOutput } from '../write-output.ts';
import { drawOutput } from './drawing-thread.ts';
import { memorySource } from './memory-source.ts';
import { type ServePageOptions, servePage } from './serve-page.ts';

export interface DiagramCommandOptions extends Pick<ServePageOptions, 'enough'> {
  readonly format: 'mermaid' | 'svg' | 'json' | 'table';
  readonly export?: string;
  readonly from?: string;
  /** Default: standard output. */
  readonly output?: string;
  /** Shows the machine in the page instead. */
  readonly open?: boolean;
  /** Whether `open` starts the user's browser (default: true). */
  readonly browser?: boolean;
}

/**
 * Without a machine, all machines are listed.
 *
 * @throws ChartpilotError if there is no such machine, it cannot be drawn, its trace cannot be read, or the file cannot be written
 */
export async function drawDiagram(
  machine: string | undefined,
  options: DiagramCommandOptions,
  output: CommandOutput,
): Promise<void> {
  const { from, open, browser = true, enough } = options;
  const recordedMachines = from === undefined ? undefined : await machinesOfTrace(from);
  if (open === true) {
    const charts =
      machine === undefined
        ? (recordedMachines ?? (await ownCharts()))
        : [await chartNamed(machine, recordedMachines, options)];
    const name = machine ?? from ?? 'machines of chartpilot';
    await servePage(
      { sources: [headerOnly(name, charts)], open: browser, ...(enough !== undefined && { enough }) },
      output,
    );
  } else if (machine === undefined) {
    output.out(
      recordedMachines === undefined
        ? listOwnMachines()
        : recordedMachines.map(({ id }) => `${visibleLine(id)}\n`).join(''),
    );
  } else {
    const chart = await chartNamed(machine, recordedMachines, options);
    const text =
      recordedMachines === undefined
        ? await textOf(chart, options.format)
        : await renderInThread(chart, options.format);
    if (options.output === undefined) output.out(text);
    else writeOutput('--output', options.output, text);
  }
}

async function machinesOfTrace(path: string): Promise<readonly Statechart[]> {
  const openedTrace = await openTrace(path);
  await openedTrace.close();
  return openedTrace.header.machines;
}

async function chartNamed(
  machine: string,
  recordedMachines: readonly Statechart[] | undefined,
  options: DiagramCommandOptions,
): Promise<Statechart> {
  if (recordedMachines === undefined) return statechartOf(await findMachine(machine, options.export));
  const recordedMachine = recordedMachines.find(({ id }) => id === machine);
  if (recordedMachine !== undefined) return recordedMachine;
  throw new ChartpilotError('FLAG_INVALID', `unknown machine '${machine}' in ${options.from}`, {
    hint:
      recordedMachines.length === 0
        ? 'the trace contains no machines'
        : `machines of the trace: ${recordedMachines.map(({ id }) => id).join(', ')}`,
  });
}

async function ownCharts(): Promise<Statechart[]> {
  return (await Promise.all(namedMachines.map(({ load }) => load()))).map(statechartOf);
}

function listOwnMachines(): string {
  const maxNameLength = Math.max(...namedMachines.map(({ name }) => name.length));
  return namedMachines.map(({ name, file }) => `${name.padEnd(maxNameLength)}  ${file}\n`).join('');
}

async function textOf(chart: Statechart, format: DiagramCommandOptions['format']): Promise<string> {
  if (format === 'svg') return chartOf(chart);
  if (format === 'table') return formatEventTable(chart);
  return format === 'json' ? `${JSON.stringify(chart, undefined, 2)}\n` : formatMermaid(chart);
}

/** A machine of a trace is untrusted, so it is drawn in a thread with limits. */
async function renderInThread(chart: Statechart, format: DiagramCommandOptions['format']): Promise<string> {
  return format === 'json' ? textOf(chart, format) : visibleText(await drawOutput(format, chart));
}

/** Returns a trace without events, in which one actor of each machine exists and has not started. */
function headerOnly(name: string, machines: readonly Statechart[]): ReturnType<typeof memorySource> {
  const header = formatTraceLine({
    kind: 'header',
    version: traceVersion,
    program: 'diagram',
    pid: process.pid,
    startedAt: new Date().toISOString(),
    level: 'standard',
    machines,
    actors: machines.map(({ id }) => ({ actor: id, machine: id, state: '', spawned: 0, spawnedAt: 0 })),
  });
  return memorySource(name, header);
}
