/** Texts that identify inputs of resources in cache keys. Computed once per object. */
import { memoizeByObject } from '../../model/collections/memoize-by-object.ts';
import type { ConfigKey } from '../../model/config/config.ts';
import type { Endpoint, Service } from '../../model/services/service.ts';

/** Unique among the services of a mesh at any time, but may stay the same if the service changes. */
export const serviceText = memoizeByObject(({ namespace, hostname, defaultAddress, ports }: Service) => {
  return `${namespace}/${hostname}/${defaultAddress}/${ports.map(({ number }) => number).join()}`;
});

const originsText = memoizeByObject(({ origins }: { readonly origins: readonly ConfigKey[] }) =>
  origins.map(({ namespace, name }) => `${namespace}/${name}`).join(),
);

/** Unique among DestinationRules or among VirtualServices at any time; `-` without a rule. */
export function ruleText(rule: { readonly origins: readonly ConfigKey[] } | undefined): string {
  return rule === undefined ? '-' : originsText(rule);
}

export const identitiesText = memoizeByObject((endpoints: readonly Endpoint[]) =>
  [...new Set(endpoints.map(({ serviceAccount }) => serviceAccount))].filter(Boolean).sort().join(),
);

export const labelsText = memoizeByObject((labels: Readonly<Record<string, string>>) =>
  JSON.stringify(Object.entries(labels).sort()),
);
