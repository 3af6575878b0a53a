import type { KnownActors } from '../known-actors.ts';
import type { TraceBody } from '../trace.ts';

/** What every kind of record is made with. */
export interface Recording {
  readonly actors: KnownActors;
  /** Types of events that are not recorded, nor the steps that they cause where no state changes. */
  readonly omitted: ReadonlySet<string>;
  /** Makes payloads, contexts and the like fit to be looked at. */
  readonly data: (value: unknown) => unknown;
  /** @returns the record's number */
  readonly record: (body: TraceBody) => number;
}
