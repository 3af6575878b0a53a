/** Resources that patches add (spec/discovery.md §8.9). */
import type { DescMessage, Message, MessageShape } from '@bufbuild/protobuf';
import { configKeyOf } from '../../model/config/config.ts';
import { withOrigins } from '../inputs/message-origin.ts';
import { namedResource, type Resource } from '../messages/resource.ts';
import type { HeldPatch } from './held-patch.ts';
import { PatchFailure } from './merge-messages.ts';
import { valueAs } from './patch-set.ts';
import { attempt } from './status.ts';

export interface AddedKind<Desc extends DescMessage> {
  readonly schema: Desc;
  /** What the addition is, with its article, to name it in messages: `a cluster`. */
  readonly what: string;
  /** Whether one of this name is wanted; absent: all are. */
  readonly isWanted?: (name: string) => boolean;
  /** What is made of the patch's value; absent: it is left as it is. */
  readonly completed?: (message: MessageShape<Desc>) => MessageShape<Desc>;
}

/** What each patch adds: one object, for all who have the patch. */
const added = new WeakMap<HeldPatch['patch'], Resource>();

/** Envoy refuses two resources of one name: the first stays. */
export function withAdded<Desc extends DescMessage>(
  resources: Resource[],
  additions: readonly HeldPatch[],
  { schema, what, isWanted = () => true, completed = (message) => message }: AddedKind<Desc>,
): Resource[] {
  if (additions.length === 0) return resources;
  const taken = new Set(resources.map(({ name }) => name));
  const more = additions.flatMap((held) =>
    attempt<readonly Resource[]>(held, [], () => {
      const resource = addedBy(held, schema, completed);
      if (!isWanted(resource.name)) return [];
      if (taken.has(resource.name)) throw new PatchFailure(`there is already ${what} ${resource.name}`);
      taken.add(resource.name);
      return [resource];
    }),
  );
  return more.length === 0 ? resources : [...resources, ...more];
}

function addedBy<Desc extends DescMessage>(
  held: HeldPatch,
  schema: Desc,
  completed: NonNullable<AddedKind<Desc>['completed']>,
): Resource {
  let resource = added.get(held.patch);
  if (resource === undefined) {
    const value = completed(valueAs(schema, held)) as Message as Message & { readonly name: string };
    const message = withOrigins(value, [held.origin]);
    resource = namedResource(schema, message, [configKeyOf(held.filter)]);
    added.set(held.patch, resource);
  }
  return resource;
}
