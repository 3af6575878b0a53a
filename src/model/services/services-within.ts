/** Services that a host, perhaps a wildcard, is about. */
import { onceFor } from '../collections/once-for.ts';
import { isHostWithin } from '../fields/hostname.ts';
import type { Service } from './service.ts';

/** The host that was asked for last of a list of services, which many scopes share. */
const within = new WeakMap<readonly Service[], { readonly host: string; readonly services: readonly Service[] }>();

/** Those of a list whose names lie within the host: looked for once for all who ask for the same. */
export function servicesWithin(services: readonly Service[], host: string): readonly Service[] {
  let known = within.get(services);
  if (known?.host !== host) {
    known = { host, services: services.filter(({ hostname }) => isHostWithin(hostname, host)) };
    within.set(services, known);
  }
  return known.services;
}

/** Several services of a host are one for each of its addresses, or of several objects, each with ports of its own. */
export const servicesByHost = onceFor((services: readonly Service[]) => {
  const byHost = Map.groupBy(services, ({ hostname }) => hostname);
  return (host: string): readonly Service[] => byHost.get(host) ?? [];
});
