import type { Readable } from 'node:stream';
import type { TraceHeader } from '../../runtime/trace/trace.ts';
import type { Source } from '../page-data.ts';

export interface PageSource extends Source {
  /** @throws ChartpilotError with instructions if the trace is unavailable */
  header(): Promise<TraceHeader>;
  /**
   * The text is the header, then the records.
   *
   * @throws ChartpilotError as {@link PageSource.header}
   */
  read(options: { readonly follow: boolean }): Promise<Readable>;
}
