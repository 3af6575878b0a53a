/** Extension configurations that patches add: filters name them, and Envoy asks for them (spec/discovery.md §8.9, ECDS). */
import { TypedExtensionConfigSchema } from '../../gen/envoy/config/core/v3/extension_pb.ts';
import { configKeyOf } from '../../model/config.ts';
import { withOrigins } from '../origin.ts';
import { namedResource, type Resource } from '../resource.ts';
import { PatchFailure } from './merge.ts';
import { type HeldPatch, type PatchSet, valueAs } from './patch-set.ts';
import { attempt } from './status.ts';

/** @param names asked for; of those that are there already the first stays */
export function withExtensions(extensions: Resource[], names: readonly string[], patches: PatchSet): Resource[] {
  const additions = patches.of('EXTENSION_CONFIG');
  if (additions.length === 0) return extensions;
  const taken = new Set(extensions.map(({ name }) => name));
  const asked = new Set(names);
  const more = additions.flatMap((held) =>
    attempt<readonly Resource[]>(held, [], () => {
      const resource = added.get(held.patch) ?? newExtension(held);
      added.set(held.patch, resource);
      if (!asked.has(resource.name)) return [];
      if (taken.has(resource.name)) throw new PatchFailure(`there is an extension ${resource.name} already`);
      taken.add(resource.name);
      return [resource];
    }),
  );
  return more.length === 0 ? extensions : [...extensions, ...more];
}

const added = new WeakMap<HeldPatch['patch'], Resource>();

function newExtension(held: HeldPatch): Resource {
  const message = withOrigins(valueAs(TypedExtensionConfigSchema, held), [held.origin]);
  return namedResource(TypedExtensionConfigSchema, message, [configKeyOf(held.filter)]);
}
