/** Removes delayed resources from orders (rollout-gate.ts). */
import type { ResponseOrder } from '../../../../machines/discovery/xds/ads-protocol.ts';
import type { EncodedResource, ResourceSet } from '../resource-source.ts';
import type { SentResources } from '../responses/ads-sent.ts';
import { LayeredResources } from '../responses/layered-resources.ts';

export interface PreparedResponse {
  readonly order: ResponseOrder;
  readonly set: ResourceSet;
}

/** Ordered resources that the client does not have in this version. */
export function ofOrder(order: ResponseOrder, names: readonly string[], { resources }: ResourceSet): readonly string[] {
  const { all, changed, has } = order;
  const requestedNames = all || changed ? undefined : new Set(order.requested);
  const versions = new Map(has?.names.map((name, index) => [name, has.versions[index]]));
  return names.filter(
    (name) => (requestedNames?.has(name) ?? true) && versions.get(name) !== resources.get(name)!.version,
  );
}

function isNothingLeft(
  order: ResponseOrder,
  resources: ReadonlyMap<string, EncodedResource>,
  sent: SentResources,
): boolean {
  const { all, requested: requestedNames, names } = order;
  if (requestedNames.length > 0) return false;
  // A SotW response without listeners would remove those of the client.
  if (all) return resources.size === 0 && (names === '*' || names.length === 0);
  const { changed, removed } = sent.differenceTo(resources);
  return changed.length === 0 && removed.length === 0 && !sent.hasForgotten;
}

/** Replaces delayed resources by those of the client. `undefined` if nothing remains to send. */
export function withoutHeld(
  order: ResponseOrder,
  set: ResourceSet,
  heldNames: ReadonlySet<string>,
  sent: SentResources,
): PreparedResponse | undefined {
  const previous = new Map<string, EncodedResource>();
  for (const name of heldNames) {
    const resource = sent.get(name);
    if (resource !== undefined) previous.set(name, resource);
  }
  const absent = [...heldNames].filter((name) => !previous.has(name));
  const left = (names: readonly string[]): readonly string[] => names.filter((name) => !heldNames.has(name));
  const { has } = order;
  const names = order.names === '*' ? order.names : left(order.names);
  const requestedNames = left(order.requested);
  const resources = LayeredResources.shared(set.resources, [...previous.values()], absent);
  if (isNothingLeft({ ...order, names, requested: requestedNames }, resources, sent)) return undefined;
  const next: ResponseOrder = {
    ...order,
    names,
    requested: requestedNames,
    ...(has !== undefined && {
      has: {
        names: left(has.names),
        versions: has.versions.filter((_, index) => !heldNames.has(has.names[index]!)),
      },
    }),
  };
  return { order: next, set: { version: set.version, resources } };
}
