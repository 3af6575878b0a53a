/** Data that the page gets from its server, or contains if it is a single file. */

import type { TraceHeader } from '../runtime/trace/trace.ts';
import type { BriefChart } from './statechart/brief-charts.ts';
import type { Verdict } from './verdicts/verdict.ts';

/** A trace that can be opened. */
export interface Source {
  /** The displayed name: `sidecar`, `agent.trace`. */
  readonly name: string;
  readonly kind: 'file' | 'live';
  /** The path of the file, or `host:port` of the program. */
  readonly place: string;
}

/** The displayed name of several programs merged into one trace. */
export const togetherName = 'on one axis';

/** Data that belong to a trace in addition to its records. */
export interface Session {
  /** The chart of each machine in the header of the trace, as SVG text, by the ID of the machine. */
  readonly charts: Readonly<Record<string, string>>;
  /** Brief charts of the same machines, with inactive states folded. */
  readonly briefCharts: Readonly<Record<string, readonly BriefChart[]>>;
  /** By machine ID, the reason why a machine has no chart; absent if all machines have one. */
  readonly notDrawn?: Readonly<Record<string, string>>;
  /**
   * The wall clock of the page's server at the time of the response (ms since 1970): that of the program's host, if the
   * program is running.
   */
  readonly now?: number;
  /** The sequence diagrams that the trace is checked against; empty for a program whose diagrams are not known. */
  readonly diagrams: readonly { readonly file: string; readonly text: string }[];
  /** For an exported file with a part of a trace: data on the whole trace. */
  readonly part?: TracePart;
}

export interface TracePart {
  /** Records of the whole trace. */
  readonly of: number;
  /** The summary of the whole trace within the part, by positions in the part. */
  readonly verdicts: readonly Verdict[];
}

/** The fields of a trace header that its {@link Session} is built from. */
export type Described = Pick<TraceHeader, 'program' | 'machines'>;

/** Paths below the address of the page. */
export const sourcesPath = 'sources.json';
export const sessionPath = (source: number): string => `session/${source}.json`;
export const tracePath = (source: number): string => `trace/${source}`;
/** Returns the {@link Session} of a trace that the user opened in the page; the request body is {@link Described}. */
export const describePath = 'describe';

/** IDs of the `<script>` elements of a single-file page. */
export const sourcesElement = 'chartpilot-sources';
export const sessionElement = (source: number): string => `chartpilot-session-${source}`;
/** The address fragment that the page opens with, unless its own address has one. */
export const addressElement = 'chartpilot-address';
export const traceElement = (source: number): string => `chartpilot-trace-${source}`;
