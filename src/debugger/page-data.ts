import type { TraceHeader } from '../runtime/trace/trace.ts';
import type { Finding } from './findings/finding.ts';
import type { BriefChart } from './statechart/brief-charts.ts';

export interface Source {
  /** A name such as `sidecar` or `agent.trace`. */
  readonly name: string;
  readonly kind: 'file' | 'live';
  /** The path of the file, or `host:port` of the program. */
  readonly place: string;
}

export const mergedName = 'on one axis';

export interface Session {
  /** SVG text by machine ID. */
  readonly charts: Readonly<Record<string, string>>;
  readonly briefCharts: Readonly<Record<string, readonly BriefChart[]>>;
  /** The reason why a machine has no chart. */
  readonly notDrawn?: Readonly<Record<string, string>>;
  /** Wall clock of the page's server at the time of the response (ms since 1970). */
  readonly now?: number;
  /** Empty for a program without bundled diagrams. */
  readonly diagrams: readonly { readonly file: string; readonly text: string }[];
  /** Data on the entire trace, if the file contains only a part of the trace. */
  readonly part?: ExportedPart;
}

export interface ExportedPart {
  readonly of: number;
  /** The findings of the entire trace that are within the part. */
  readonly verdicts: readonly Finding[];
}

export type TraceDescription = Pick<TraceHeader, 'program' | 'machines'>;

export const sourcesPath = 'sources.json';
export const sessionPath = (source: number): string => `session/${source}.json`;
export const tracePath = (source: number): string => `trace/${source}`;
/** Path of the request for the {@link Session} of a trace that the user opened in the page. */
export const describePath = 'describe';

/** IDs of the `<script>` elements of a single-file page. */
export const sourcesElement = 'chartpilot-sources';
export const sessionElement = (source: number): string => `chartpilot-session-${source}`;
/** ID of the element with the address fragment that the page opens with, unless its own address has one. */
export const addressElement = 'chartpilot-address';
export const traceElement = (source: number): string => `chartpilot-trace-${source}`;
