/** Texts that identify inputs of resources in cache keys. Computed once per object. */
import { onceFor } from '../../model/collections/once-for.ts';
import type { ConfigKey } from '../../model/config/config.ts';
import type { Endpoint, Service } from '../../model/services/service.ts';

/** Unique among the services of a mesh at any time, but may stay the same if the service changes. */
export const serviceText = onceFor(({ namespace, hostname, defaultAddress, ports }: Service) => {
  return `${namespace}/${hostname}/${defaultAddress}/${ports.map(({ number }) => number).join()}`;
});

const originsText = onceFor(({ origins }: { readonly origins: readonly ConfigKey[] }) =>
  origins.map(({ namespace, name }) => `${namespace}/${name}`).join(),
);

/** Unique among DestinationRules or among VirtualServices at any time. `-` without a rule. */
export function ruleText(rule: { readonly origins: readonly ConfigKey[] } | undefined): string {
  return rule === undefined ? '-' : originsText(rule);
}

/** Identities of endpoints, which mutual TLS verifies. */
export const identitiesText = onceFor((endpoints: readonly Endpoint[]) =>
  [...new Set(endpoints.map(({ serviceAccount }) => serviceAccount))].filter(Boolean).sort().join(),
);

export const labelsText = onceFor((labels: Readonly<Record<string, string>>) =>
  JSON.stringify(Object.entries(labels).sort()),
);
