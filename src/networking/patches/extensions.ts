/** Extension configurations that patches add: filters name them, and Envoy asks for them (spec/discovery.md §8.9, ECDS). */
import { TypedExtensionConfigSchema } from '../../gen/envoy/config/core/v3/extension_pb.ts';
import type { Resource } from '../messages/resource.ts';
import { withAdded } from './additions.ts';
import type { PatchSet } from './patch-set.ts';

/** @param names asked for; of those that are there already the first stays */
export function withExtensions(extensions: Resource[], names: readonly string[], patches: PatchSet): Resource[] {
  const asked = new Set(names);
  return withAdded(extensions, patches.of('EXTENSION_CONFIG'), {
    schema: TypedExtensionConfigSchema,
    what: 'an extension',
    isWanted: (name) => asked.has(name),
  });
}
