/** What an order sends of a set of which some is held back (rollout-gate.ts). */
import type { ResponseOrder } from '../../../../machines/discovery/ads/ads-protocol.ts';
import type { EncodedResource, ResourceSet } from '../resource-source.ts';
import type { SentResources } from './ads-sent.ts';

/** Whether an order may send the resource, which the client does not have so. */
export function isOfOrder(
  { all, asked, changed, has }: ResponseOrder,
  name: string,
  { resources }: ResourceSet,
): boolean {
  if (!all && !changed && !asked.includes(name)) return false;
  if (has === undefined) return true;
  const index = has.names.indexOf(name);
  return index < 0 || has.versions[index] !== resources.get(name)!.version;
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
