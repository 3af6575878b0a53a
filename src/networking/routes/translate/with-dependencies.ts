import type { ConfigKey } from '../../../model/config/config.ts';

export interface WithDependencies<Value> {
  readonly value: Value;
  /** Keys of the objects, except the translated object. */
  readonly dependsOn: readonly ConfigKey[];
}

export function combineDependencies<Value>(all: readonly WithDependencies<Value>[]): WithDependencies<Value[]> {
  return { value: all.map(({ value }) => value), dependsOn: all.flatMap(({ dependsOn }) => dependsOn) };
}
