/**
 * Host names and wildcards. A wildcard is `*`, or `*.` and a domain: it stands for every name of one label or more
 * under the domain, other wildcards included. A partial one, `*x.test`, stands for every name that ends so.
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
  let rest = isWildcard(host) ? host.slice(host.startsWith('*.') ? 2 : 1) : host;
  for (let dot = rest.indexOf('.'); dot >= 0; dot = rest.indexOf('.')) {
    rest = rest.slice(dot + 1);
    yield `*.${rest}`;
  }
  if (host !== '*') yield '*';
}

/** Hosts to look among: what holds them does not change once it was asked. */
export interface HostKeys {
  has(host: string): boolean;
  keys(): Iterable<string>;
}

const partialOf = new WeakMap<HostKeys, readonly string[]>();

/** `*x.test`: almost nobody writes them. */
export function isPartialWildcard(host: string): boolean {
  return isWildcard(host) && host !== '*' && !host.startsWith('*.');
}

/** The keys that a host lies within, the most specific first; as many look-ups as the host has labels. */
export function* keysAround(host: string, keys: HostKeys): Generator<string> {
  let partial = partialOf.get(keys);
  if (partial === undefined) {
    partial = [...keys.keys()].filter(isPartialWildcard);
    partialOf.set(keys, partial);
  }
  const around = partial.filter((one) => one !== host && isHostWithin(host, one)).sort((a, b) => b.length - a.length);
  for (const candidate of widerHosts(host)) {
    while (
      around[0] !== undefined &&
      isWildcard(candidate) &&
      candidate !== host &&
      around[0].length > candidate.length
    ) {
      yield around.shift()!;
    }
    if (keys.has(candidate)) yield candidate;
  }
  yield* around;
}

/** The most specific of the keys that a host lies within. */
export function mostSpecific(host: string, keys: HostKeys): string | undefined {
  for (const candidate of keysAround(host, keys)) return candidate;
  return undefined;
}

/** Whether a name is to be completed by who says it: names with a dot, wildcards and addresses are as they are. */
export function isShortName(host: string): boolean {
  return host !== '' && !host.includes('.') && !host.includes(':') && !isWildcard(host);
}

/**
 * What short names in objects mean. `svc.<domain>` is the suffix of Kubernetes: where no Kubernetes is, only a service
 * that is known by such a name has it.
 */
export class HostNames {
  readonly domain: string;
  /** What a name means does not depend on which services there are. */
  readonly isFixed: boolean;
  private readonly isKnown: (hostname: string, namespace: string) => boolean;

  /**
   * @param domain `cluster.local`
   * @param isKnown whether a namespace sees a service of the name; absent: services are those of Kubernetes
   */
  constructor(domain: string, isKnown?: (hostname: string, namespace: string) => boolean) {
    this.domain = domain;
    this.isFixed = isKnown === undefined;
    this.isKnown = isKnown ?? (() => true);
  }

  /** `reviews` said in namespace `shop` is `reviews.shop.svc.cluster.local`, or else `reviews.shop`. */
  qualified(host: string, namespace: string): string {
    if (!isShortName(host)) return host;
    const inKubernetes = `${host}.${namespace}.svc.${this.domain}`;
    return this.isKnown(inKubernetes, namespace) ? inKubernetes : `${host}.${namespace}`;
  }
}
