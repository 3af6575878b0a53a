import type { ResponseOrder } from '../../../../machines/discovery/xds/ads-protocol.ts';
import type { ResourceSet } from '../resource-source.ts';
import type { SentResources } from './ads-sent.ts';

/** Omits names that neither exist nor were sent. */
export function omitMissing(
  order: ResponseOrder,
  { resources }: ResourceSet,
  sentResources: SentResources,
): ResponseOrder | undefined {
  const isAvailable = (name: string): boolean => resources.has(name) || sentResources.has(name);
  const { all, changed } = order;
  const requestedNames = order.requested.filter(isAvailable);
  const names = order.names === '*' ? order.names : order.names.filter(isAvailable);
  if (names.length === order.names.length && requestedNames.length === order.requested.length) return order;
  const isOrderEmpty = all ? resources.size === 0 && names.length === 0 : !changed && requestedNames.length === 0;
  return isOrderEmpty ? undefined : { ...order, names, requested: requestedNames };
}
