import type { KnownActors } from '../known-actors.ts';
import type { TraceBody } from '../trace.ts';

export interface RecorderContext {
  readonly actors: KnownActors;
  readonly omitted: ReadonlySet<string>;
  readonly data: (value: unknown) => unknown;
  readonly record: (body: TraceBody) => number;
}
