/** Short texts for what resources are made from: keys of a generators' memory. Each is made once for its object. */
import type { ConfigKey } from '../../model/config/config.ts';
import type { Endpoint, Service } from '../../model/services/service.ts';

/** Of two services that a mesh has at the same time no text is the same; of one that changed it may stay. */
export const serviceText = textOf<Service>(({ namespace, hostname, defaultAddress, ports }) => {
  return `${namespace}/${hostname}/${defaultAddress}/${ports.map(({ number }) => number).join()}`;
});

const originsText = textOf<{ readonly origins: readonly ConfigKey[] }>(({ origins }) =>
  origins.map(({ namespace, name }) => `${namespace}/${name}`).join(),
);

/** Of a destination rule or a virtual service; `-` for none. */
export function ruleText(rule: { readonly origins: readonly ConfigKey[] } | undefined): string {
  return rule === undefined ? '-' : originsText(rule);
}

/** Who the endpoints are, as mutual TLS sees them. */
export const identitiesText = textOf<readonly Endpoint[]>((endpoints) =>
  [...new Set(endpoints.map(({ serviceAccount }) => serviceAccount))].filter(Boolean).sort().join(),
);

export const labelsText = textOf<Readonly<Record<string, string>>>((labels) =>
  JSON.stringify(Object.entries(labels).sort()),
);

function textOf<T extends object>(make: (value: T) => string): (value: T) => string {
  const texts = new WeakMap<T, string>();
  return (value) => {
    let text = texts.get(value);
    if (text === undefined) {
      text = make(value);
      texts.set(value, text);
    }
    return text;
  };
}
