import type { ResponseOrder } from '../../../../machines/discovery/xds/ads-protocol.ts';
import type { EncodedResource, ResourceSet } from '../resource-source.ts';
import type { SentResources } from '../responses/ads-sent.ts';
import { LayeredResources } from '../responses/layered-resources.ts';

export interface PreparedResponse {
  readonly order: ResponseOrder;
  readonly set: ResourceSet;
}

/** Ordered resources that the client does not have in this version. */
export function outdatedNames(
  order: ResponseOrder,
  names: readonly string[],
  { resources }: ResourceSet,
): readonly string[] {
  const { all, changed, has } = order;
  const requestedNames = all || changed ? undefined : new Set(order.requested);
  const versions = new Map(has?.names.map((name, index) => [name, has.versions[index]]));
  return names.filter(
    (name) => (requestedNames?.has(name) ?? true) && versions.get(name) !== resources.get(name)!.version,
  );
}

function isNothingToSend(
  order: ResponseOrder,
  resources: ReadonlyMap<string, EncodedResource>,
  sentResources: SentResources,
): boolean {
  const { all, requested: requestedNames, names } = order;
  if (requestedNames.length > 0) return false;
  // A SotW response without listeners would remove those of the client.
  if (all) return resources.size === 0 && (names === '*' || names.length === 0);
  const { changedNames, removedNames } = sentResources.computeDifference(resources);
  return changedNames.length === 0 && removedNames.length === 0 && !sentResources.hasForgottenNames;
}

/** `undefined` if nothing remains to send. */
export function withClientVersions(
  order: ResponseOrder,
  set: ResourceSet,
  heldNames: ReadonlySet<string>,
  sentResources: SentResources,
): PreparedResponse | undefined {
  const previous = new Map<string, EncodedResource>();
  for (const name of heldNames) {
    const resource = sentResources.get(name);
    if (resource !== undefined) previous.set(name, resource);
  }
  const absentNames = [...heldNames].filter((name) => !previous.has(name));
  const withoutHeldNames = (names: readonly string[]): readonly string[] =>
    names.filter((name) => !heldNames.has(name));
  const { has } = order;
  const names = order.names === '*' ? order.names : withoutHeldNames(order.names);
  const requestedNames = withoutHeldNames(order.requested);
  const resources = LayeredResources.sharedLayerOver(set.resources, [...previous.values()], absentNames);
  if (isNothingToSend({ ...order, names, requested: requestedNames }, resources, sentResources)) return undefined;
  const next: ResponseOrder = {
    ...order,
    names,
    requested: requestedNames,
    ...(has !== undefined && {
      has: {
        names: withoutHeldNames(has.names),
        versions: has.versions.filter((_, index) => !heldNames.has(has.names[index]!)),
      },
    }),
  };
  return { order: next, set: { version: set.version, resources } };
}
