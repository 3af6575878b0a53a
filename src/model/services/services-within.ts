import { memoizeByObject } from '../collections/memoize-by-object.ts';
import { isHostWithin } from '../fields/hostname.ts';
import type { Service } from './service.ts';

/** Caches only the last requested host per list of services. Many scopes share a list. */
const cacheByServices = new WeakMap<
  readonly Service[],
  { readonly host: string; readonly services: readonly Service[] }
>();

export function servicesWithin(services: readonly Service[], host: string): readonly Service[] {
  let cachedServices = cacheByServices.get(services);
  if (cachedServices?.host !== host) {
    cachedServices = { host, services: services.filter(({ hostname }) => isHostWithin(hostname, host)) };
    cacheByServices.set(services, cachedServices);
  }
  return cachedServices.services;
}

/** A host has several services if it has several addresses, or if several objects with different ports define it. */
export const servicesByHost = memoizeByObject((services: readonly Service[]) => {
  const groupedServices = Map.groupBy(services, ({ hostname }) => hostname);
  return (host: string): readonly Service[] => groupedServices.get(host) ?? [];
});
