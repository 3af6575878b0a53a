/** Resources that patches add (spec/discovery.md §8.9). */
import type { DescMessage, Message } from '@bufbuild/protobuf';
import { configKeyOf } from '../../model/config.ts';
import { withOrigins } from '../origin.ts';
import { namedResource, type Resource } from '../resource.ts';
import { PatchFailure } from './merge.ts';
import { type HeldPatch, valueAs } from './patch-set.ts';
import { attempt } from './status.ts';

export interface AddedKind {
  readonly schema: DescMessage;
  /** With its article, for whoever wrote a second one: `a cluster`. */
  readonly what: string;
  /** Whether one of this name is wanted; absent: all are. */
  readonly isWanted?: (name: string) => boolean;
}

/** Of one patch there is one, for all who have it. */
const added = new WeakMap<HeldPatch['patch'], Resource>();

/** Envoy refuses two resources of one name: the first stays. */
export function withAdded(
  resources: Resource[],
  additions: readonly HeldPatch[],
  { schema, what, isWanted = () => true }: AddedKind,
): Resource[] {
  if (additions.length === 0) return resources;
  const taken = new Set(resources.map(({ name }) => name));
  const more = additions.flatMap((held) =>
    attempt<readonly Resource[]>(held, [], () => {
      const resource = addedBy(held, schema);
      if (!isWanted(resource.name)) return [];
      if (taken.has(resource.name)) throw new PatchFailure(`there is ${what} ${resource.name} already`);
      taken.add(resource.name);
      return [resource];
    }),
  );
  return more.length === 0 ? resources : [...resources, ...more];
}

function addedBy(held: HeldPatch, schema: DescMessage): Resource {
  let resource = added.get(held.patch);
  if (resource === undefined) {
    const message = withOrigins(valueAs(schema, held) as Message & { readonly name: string }, [held.origin]);
    resource = namedResource(schema, message, [configKeyOf(held.filter)]);
    added.set(held.patch, resource);
  }
  return resource;
}
