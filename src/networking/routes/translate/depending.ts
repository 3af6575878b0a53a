/** A translated value, and the objects from which it was made. */
import type { ConfigKey } from '../../../model/config/config.ts';

export interface Depending<Value> {
  readonly value: Value;
  /** Keys of the objects, beside the one that is translated. */
  readonly dependsOn: readonly ConfigKey[];
}

/** The values in order, with everything that any of them depends on. */
export function dependingAll<Value>(all: readonly Depending<Value>[]): Depending<Value[]> {
  return { value: all.map(({ value }) => value), dependsOn: all.flatMap(({ dependsOn }) => dependsOn) };
}
