import type { DescMessage, Message, MessageShape } from '@bufbuild/protobuf';
import { configKeyOf } from '../../model/config/config.ts';
import { withOrigins } from '../inputs/message-origin.ts';
import { type EnvoyResource, namedResource } from '../messages/resource.ts';
import type { ActivePatch } from './active-patch.ts';
import { PatchFailure } from './merge-messages.ts';
import { messageOfPatch } from './patch-set.ts';
import { attemptPatch } from './status.ts';

export interface AddedKind<Desc extends DescMessage> {
  readonly schema: Desc;
  /** Noun for messages, such as `a cluster`. */
  readonly description: string;
  /** If absent, all names are requested. */
  readonly isRequested?: (name: string) => boolean;
  readonly complete?: (message: MessageShape<Desc>) => MessageShape<Desc>;
}

const addedResources = new WeakMap<ActivePatch['patch'], EnvoyResource>();

/** Keeps the first resource of a name, because Envoy rejects duplicates. */
export function withAdded<Desc extends DescMessage>(
  resources: EnvoyResource[],
  addedPatches: readonly ActivePatch[],
  { schema, description, isRequested = () => true, complete = (message) => message }: AddedKind<Desc>,
): EnvoyResource[] {
  if (addedPatches.length === 0) return resources;
  const takenNames = new Set(resources.map(({ name }) => name));
  const addedResourceList = addedPatches.flatMap((activePatch) =>
    attemptPatch<readonly EnvoyResource[]>(activePatch, [], () => {
      const resource = resourceAddedBy(activePatch, schema, complete);
      if (!isRequested(resource.name)) return [];
      if (takenNames.has(resource.name)) throw new PatchFailure(`there is already ${description} ${resource.name}`);
      takenNames.add(resource.name);
      return [resource];
    }),
  );
  return addedResourceList.length === 0 ? resources : [...resources, ...addedResourceList];
}

function resourceAddedBy<Desc extends DescMessage>(
  activePatch: ActivePatch,
  schema: Desc,
  completeMessage: NonNullable<AddedKind<Desc>['complete']>,
): EnvoyResource {
  let resource = addedResources.get(activePatch.patch);
  if (resource === undefined) {
    const value = completeMessage(messageOfPatch(schema, activePatch)) as Message as Message & {
      readonly name: string;
    };
    const message = withOrigins(value, [activePatch.origin]);
    resource = namedResource(schema, message, [configKeyOf(activePatch.filter)]);
    addedResources.set(activePatch.patch, resource);
  }
  return resource;
}
