import { memoizeByObject } from '../collections/memoize-by-object.ts';
import { isHostWithin } from '../fields/hostname.ts';
import type { Service } from './service.ts';

/** Caches only the last requested host per list of services, which many scopes share. */
const within = new WeakMap<readonly Service[], { readonly host: string; readonly services: readonly Service[] }>();

/** The services that a host or wildcard covers. Cached for repeated calls with the same list and host. */
export function servicesWithin(services: readonly Service[], host: string): readonly Service[] {
  let cachedServices = within.get(services);
  if (cachedServices?.host !== host) {
    cachedServices = { host, services: services.filter(({ hostname }) => isHostWithin(hostname, host)) };
    within.set(services, cachedServices);
  }
  return cachedServices.services;
}

/** A host has several services if it has several addresses, or if several objects with different ports define it. */
export const servicesByHost = memoizeByObject((services: readonly Service[]) => {
  const byHost = Map.groupBy(services, ({ hostname }) => hostname);
  return (host: string): readonly Service[] => byHost.get(host) ?? [];
});
