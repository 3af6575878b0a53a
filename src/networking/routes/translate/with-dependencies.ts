import type { ConfigKey } from '../../../model/config/config.ts';

export interface WithDependencies<Value> {
  readonly value: Value;
  /** Keys of the objects, except the translated object. */
  readonly dependsOn: readonly ConfigKey[];
}

export function combineDependencies<Value>(items: readonly WithDependencies<Value>[]): WithDependencies<Value[]> {
  return { value: items.map(({ value }) => value), dependsOn: items.flatMap(({ dependsOn }) => dependsOn) };
}
