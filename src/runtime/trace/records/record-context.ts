import type { KnownActors } from '../known-actors.ts';
import type { TraceBody } from '../trace.ts';

export interface RecorderContext {
  readonly actors: KnownActors;
  /** Event types that are not recorded, nor the steps that they cause without a state change. */
  readonly omitted: ReadonlySet<string>;
  /** Converts payloads and contexts before they are recorded. */
  readonly data: (value: unknown) => unknown;
  readonly record: (body: TraceBody) => number;
}
