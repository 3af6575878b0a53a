/** Short texts for what resources are made from: keys of a generators' memory. Each is made once for its object. */
import { onceFor } from '../../model/collections/once-for.ts';
import type { ConfigKey } from '../../model/config/config.ts';
import type { Endpoint, Service } from '../../model/services/service.ts';

/** A text that tells a service apart from all others that a mesh has at the same time; when the service changes, it may stay the same. */
export const serviceText = onceFor(({ namespace, hostname, defaultAddress, ports }: Service) => {
  return `${namespace}/${hostname}/${defaultAddress}/${ports.map(({ number }) => number).join()}`;
});

const originsText = onceFor(({ origins }: { readonly origins: readonly ConfigKey[] }) =>
  origins.map(({ namespace, name }) => `${namespace}/${name}`).join(),
);

/** A text that tells apart destination rules, or virtual services, of one moment; `-` for none. */
export function ruleText(rule: { readonly origins: readonly ConfigKey[] } | undefined): string {
  return rule === undefined ? '-' : originsText(rule);
}

/** The identities of the endpoints, as mutual TLS sees them. */
export const identitiesText = onceFor((endpoints: readonly Endpoint[]) =>
  [...new Set(endpoints.map(({ serviceAccount }) => serviceAccount))].filter(Boolean).sort().join(),
);

export const labelsText = onceFor((labels: Readonly<Record<string, string>>) =>
  JSON.stringify(Object.entries(labels).sort()),
);
