import type { Readable } from 'node:stream';
import type { TraceHeader } from '../../runtime/trace/trace.ts';
import type { Source } from '../page-data.ts';

/** A trace that the page can open, from wherever it comes. */
export interface PageSource extends Source {
  /**
   * The header of the trace as it is now.
   *
   * @throws ChartpilotError when there is no trace to be had, with what to do.
   */
  header(): Promise<TraceHeader>;
  /**
   * The trace as text: its header, then its records. With `follow`, that of a live program goes on until the program ends;
   * one that breaks off ends in an error.
   *
   * @throws ChartpilotError as {@link PageSource.header}.
   */
  read(options: { readonly follow: boolean }): Promise<Readable>;
}
