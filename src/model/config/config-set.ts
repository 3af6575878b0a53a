import { type KindName, kinds, type SpecOfKind } from '../kinds/index.ts';
import { type Config, compareAge } from './config.ts';

export type ConfigSet = { readonly [K in KindName]: readonly Config<SpecOfKind[K]>[] };

export function objectsByName<Spec>(configs: readonly Config<Spec>[]): ReadonlyMap<string, Config<Spec>> {
  return new Map(configs.map((config) => [`${config.namespace}/${config.name}`, config]));
}

export function configSetOf(configs: readonly Config[]): ConfigSet {
  const groups = Map.groupBy(configs, (config) => config.kind);
  // `kind` determines the type of the spec, because the kind's decoder produced the spec.
  const configsOfKind = <K extends KindName>(kind: K): readonly Config<SpecOfKind[K]>[] =>
    ((groups.get(kind) ?? []) as Config<SpecOfKind[K]>[]).toSorted(compareAge);
  return Object.fromEntries(
    (Object.keys(kinds) as KindName[]).map((kind) => [kind, configsOfKind(kind)]),
  ) as unknown as ConfigSet;
}
