/** A translated value and the objects that it was translated from. */
import type { ConfigKey } from '../../../model/config/config.ts';

export interface WithDependencies<Value> {
  readonly value: Value;
  /** Keys of the objects, without the translated one. */
  readonly dependsOn: readonly ConfigKey[];
}

export function combineDependencies<Value>(all: readonly WithDependencies<Value>[]): WithDependencies<Value[]> {
  return { value: all.map(({ value }) => value), dependsOn: all.flatMap(({ dependsOn }) => dependsOn) };
}
