/** What an order sends of a set of which some is held back (rollout-gate.ts). */
import type { ResponseOrder } from '../../../../machines/discovery/xds/ads-protocol.ts';
import type { EncodedResource, ResourceSet } from '../resource-source.ts';
import type { SentResources } from '../responses/ads-sent.ts';
import { LayeredResources } from '../responses/layered-resources.ts';

/** An order, and what it is answered from. */
export interface Prepared {
  readonly order: ResponseOrder;
  readonly set: ResourceSet;
}

/** Resources that an order may send, of those that the client does not have so. */
export function ofOrder(order: ResponseOrder, names: readonly string[], { resources }: ResourceSet): readonly string[] {
  const { all, changed, has } = order;
  const asked = all || changed ? undefined : new Set(order.asked);
  const versions = new Map(has?.names.map((name, index) => [name, has.versions[index]]));
  return names.filter((name) => (asked?.has(name) ?? true) && versions.get(name) !== resources.get(name)!.version);
}

/** Whether an order sends nothing when all that is held back is taken out of it. */
function isNothingLeft(
  order: ResponseOrder,
  resources: ReadonlyMap<string, EncodedResource>,
  sent: SentResources,
): boolean {
  const { all, asked, names } = order;
  if (asked.length > 0) return false;
  // A state-of-the-world response without listeners would remove those that the client has.
  if (all) return resources.size === 0 && (names === '*' || names.length === 0);
  const { changed, removed } = sent.differenceTo(resources);
  return changed.length === 0 && removed.length === 0 && !sent.hasForgotten;
}

/** The order and its set without what is held back, of which the client keeps what it has; `undefined`: nothing is left. */
export function withoutHeld(
  order: ResponseOrder,
  set: ResourceSet,
  held: ReadonlySet<string>,
  sent: SentResources,
): Prepared | undefined {
  const before = new Map<string, EncodedResource>();
  for (const name of held) {
    const resource = sent.get(name);
    if (resource !== undefined) before.set(name, resource);
  }
  const absent = [...held].filter((name) => !before.has(name));
  const left = (names: readonly string[]): readonly string[] => names.filter((name) => !held.has(name));
  const { has } = order;
  const names = order.names === '*' ? order.names : left(order.names);
  const asked = left(order.asked);
  const resources = LayeredResources.shared(set.resources, [...before.values()], absent);
  if (isNothingLeft({ ...order, names, asked }, resources, sent)) return undefined;
  const next: ResponseOrder = {
    ...order,
    names,
    asked,
    ...(has !== undefined && {
      has: {
        names: left(has.names),
        versions: has.versions.filter((_, index) => !held.has(has.names[index]!)),
      },
    }),
  };
  return { order: next, set: { version: set.version, resources } };
}
