/**
 * Host names and wildcards. A wildcard is `*`, or `*.` and a domain: it stands for every name of one label or more
 * under the domain, other wildcards included.
 */

export function isWildcard(host: string): boolean {
  return host.startsWith('*');
}

/** Whether every name that `inner` stands for is also one of `outer`. */
export function isHostWithin(inner: string, outer: string): boolean {
  if (inner === outer || outer === '*') return true;
  return isWildcard(outer) && inner.length >= outer.length && inner.endsWith(outer.slice(1));
}

/** Whether some name is of both. */
export function hostsOverlap(a: string, b: string): boolean {
  return isHostWithin(a, b) || isHostWithin(b, a);
}

/** The names of both, which of two hosts is the narrower one; undefined when they share none. */
export function hostIntersection(a: string, b: string): string | undefined {
  if (isHostWithin(a, b)) return a;
  return isHostWithin(b, a) ? b : undefined;
}

/** The wider hosts that a host lies within, itself first, the narrowest first: `a.b.c`, `*.b.c`, `*.c`, `*`. */
export function* widerHosts(host: string): Generator<string> {
  yield host;
  let rest = isWildcard(host) ? host.slice(2) : host;
  for (let dot = rest.indexOf('.'); dot >= 0; dot = rest.indexOf('.')) {
    rest = rest.slice(dot + 1);
    yield `*.${rest}`;
  }
  if (host !== '*') yield '*';
}

/** Orders hosts from the most specific to the least: names before wildcards, longer wildcards before shorter ones. */
export function bySpecificity(a: string, b: string): number {
  return Number(isWildcard(a)) - Number(isWildcard(b)) || (isWildcard(a) ? b.length - a.length : 0);
}

/** The most specific of the keys that a host lies within; as many look-ups as the host has labels. */
export function mostSpecific(host: string, keys: { has(key: string): boolean }): string | undefined {
  for (const candidate of widerHosts(host)) if (keys.has(candidate)) return candidate;
  return undefined;
}

/** `reviews` in namespace `shop` is `reviews.shop.svc.cluster.local`; names with a dot and wildcards are as they are. */
export function qualifiedHost(host: string, namespace: string, domain: string): string {
  return host === '' || host.includes('.') || isWildcard(host) ? host : `${host}.${namespace}.svc.${domain}`;
}
