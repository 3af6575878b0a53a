/** All objects in force, by kind. */
import { type KindName, kinds, type SpecOfKind } from '../kinds/index.ts';
import { byAge, type Config } from './config.ts';

/** Objects by kind, oldest first. */
export type ConfigSet = { readonly [K in KindName]: readonly Config<SpecOfKind[K]>[] };

/** Objects of one kind by `namespace/name`. */
export function objectsByName<Spec>(configs: readonly Config<Spec>[]): ReadonlyMap<string, Config<Spec>> {
  return new Map(configs.map((config) => [`${config.namespace}/${config.name}`, config]));
}

/** Sorts objects of any kinds into a set; kinds that are not known are left out. */
export function configSetOf(configs: readonly Config[]): ConfigSet {
  const groups = Map.groupBy(configs, (config) => config.kind);
  // An object's kind says what its spec is: whoever made it has decoded it as that.
  const of = <K extends KindName>(kind: K): readonly Config<SpecOfKind[K]>[] =>
    ((groups.get(kind) ?? []) as Config<SpecOfKind[K]>[]).toSorted(byAge);
  // One entry for each kind there is.
  return Object.fromEntries((Object.keys(kinds) as KindName[]).map((kind) => [kind, of(kind)])) as unknown as ConfigSet;
}
