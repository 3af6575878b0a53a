/** What an order sends of a set of which some is held back (rollout-gate.ts). */
import type { ResponseOrder } from '../../../../machines/discovery/ads/ads-protocol.ts';
import type { EncodedResource, ResourceSet } from '../resource-source.ts';
import type { SentResources } from './ads-sent.ts';

/** Resources that an order may send, of those that the client does not have so. */
export function ofOrder(order: ResponseOrder, names: readonly string[], { resources }: ResourceSet): readonly string[] {
  const { all, changed, has } = order;
  const asked = all || changed ? undefined : new Set(order.asked);
  const versions = new Map(has?.names.map((name, index) => [name, has.versions[index]]));
  return names.filter((name) => (asked?.has(name) ?? true) && versions.get(name) !== resources.get(name)!.version);
}

/** Whether an order sends nothing when all that is held back is taken out of it. */
export function isNothingLeft(
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
