import { TypedExtensionConfigSchema } from '../../gen/envoy/config/core/v3/extension_pb.ts';
import type { EnvoyResource } from '../messages/resource.ts';
import { withAdded } from './additions.ts';
import type { PatchSet } from './patch-set.ts';

/** @param names requested names; existing resources have priority */
export function withExtensions(
  extensions: EnvoyResource[],
  names: readonly string[],
  patches: PatchSet,
): EnvoyResource[] {
  const requestedNames = new Set(names);
  return withAdded(extensions, patches.takePatches('EXTENSION_CONFIG'), {
    schema: TypedExtensionConfigSchema,
    description: 'an extension',
    isRequested: (name) => requestedNames.has(name),
  });
}
