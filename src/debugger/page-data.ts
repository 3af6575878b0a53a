/** What the page gets from its server, or finds in itself when it is a single file. */

import type { TraceHeader } from '../runtime/trace/trace.ts';
import type { BriefChart } from './statechart/brief-charts.ts';
import type { Verdict } from './verdicts/verdict.ts';

/** A trace that can be opened. */
export interface Source {
  /** What a person calls it: `sidecar`, `agent.trace`. */
  readonly name: string;
  readonly kind: 'file' | 'live';
  /** The file's path, or `host:port` of the program. */
  readonly place: string;
}

/** What several programs in one trace are called among the sources. */
export const togetherName = 'on one axis';

/** What belongs to a trace beside its records. */
export interface Session {
  /** The picture of each machine in the trace's header, as SVG text, by the machine's id. */
  readonly charts: Readonly<Record<string, string>>;
  /** Brief pictures of the same machines: with what is not active folded. */
  readonly briefCharts: Readonly<Record<string, readonly BriefChart[]>>;
  /** Of each machine that has no picture, why, by its id; absent where all have one. */
  readonly notDrawn?: Readonly<Record<string, string>>;
  /** The wall clock of the page's server when it answered (ms since 1970): that of the program's host, if the program lives. */
  readonly now?: number;
  /** The sequence diagrams that the trace is held against; none for a program whose diagrams are not known. */
  readonly diagrams: readonly { readonly file: string; readonly text: string }[];
  /** Of a file for a colleague that holds a part of a trace: what is known of the whole. */
  readonly part?: TracePart;
}

/** A part of a trace: what it is a part of. */
export interface TracePart {
  /** Records of the whole trace. */
  readonly of: number;
  /** What the whole trace comes to within the part, by places in the part. */
  readonly verdicts: readonly Verdict[];
}

/** What of a trace's header its {@link Session} is made of. */
export type Described = Pick<TraceHeader, 'program' | 'machines'>;

/** Paths below the page's address. */
export const sourcesPath = 'sources.json';
export const sessionPath = (source: number): string => `session/${source}.json`;
export const tracePath = (source: number): string => `trace/${source}`;
/** Answers what belongs to a trace that the page was given by its person; to be sent what {@link Described} says. */
export const describePath = 'describe';

/** Ids of the `<script>` elements of a page that has everything in itself. */
export const sourcesElement = 'chartpilot-sources';
export const sessionElement = (source: number): string => `chartpilot-session-${source}`;
/** Where the page opens, as the part of an address behind its `#`, unless its own address says. */
export const addressElement = 'chartpilot-address';
export const traceElement = (source: number): string => `chartpilot-trace-${source}`;
