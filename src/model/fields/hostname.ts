/**
 * Host names and wildcards. A wildcard is `*`, or `*.` and a domain, and matches every name under the domain, including narrower wildcards. A partial
 * wildcard such as `*x.test` matches every name with that suffix.
 */

export function isWildcard(host: string): boolean {
  return host.startsWith('*');
}

export function isHostWithin(narrowerHost: string, widerHost: string): boolean {
  if (narrowerHost === widerHost || widerHost === '*') return true;
  return isWildcard(widerHost) && narrowerHost.length >= widerHost.length && narrowerHost.endsWith(widerHost.slice(1));
}

export function hostsOverlap(a: string, b: string): boolean {
  return isHostWithin(a, b) || isHostWithin(b, a);
}

/** Returns the narrower of two overlapping hosts; `undefined` if they do not overlap. */
export function hostIntersection(a: string, b: string): string | undefined {
  if (isHostWithin(a, b)) return a;
  return isHostWithin(b, a) ? b : undefined;
}

/** Starts with the host itself and ends with the widest: `a.b.c`, `*.b.c`, `*.c`, `*`. */
export function* widerHosts(host: string): Generator<string> {
  yield host;
  let remainingHost = isWildcard(host) ? host.slice(host.startsWith('*.') ? 2 : 1) : host;
  for (let dot = remainingHost.indexOf('.'); dot >= 0; dot = remainingHost.indexOf('.')) {
    remainingHost = remainingHost.slice(dot + 1);
    yield `*.${remainingHost}`;
  }
  if (host !== '*') yield '*';
}

/** The hosts must not change after the first search. */
export interface HostKeys {
  has(host: string): boolean;
  keys(): Iterable<string>;
}

const partialWildcards = new WeakMap<HostKeys, readonly string[]>();

export function isPartialWildcard(host: string): boolean {
  return isWildcard(host) && host !== '*' && !host.startsWith('*.');
}

/** Yields the most specific key first, at the cost of one look-up per label. */
export function* coveringKeys(host: string, keys: HostKeys): Generator<string> {
  let partialKeys = partialWildcards.get(keys);
  if (partialKeys === undefined) {
    partialKeys = [...keys.keys()].filter(isPartialWildcard);
    partialWildcards.set(keys, partialKeys);
  }
  const coveringPartials = partialKeys
    .filter((candidateHost) => candidateHost !== host && isHostWithin(host, candidateHost))
    .sort((a, b) => b.length - a.length);
  for (const candidate of widerHosts(host)) {
    while (
      coveringPartials[0] !== undefined &&
      isWildcard(candidate) &&
      candidate !== host &&
      coveringPartials[0].length > candidate.length
    ) {
      yield coveringPartials.shift()!;
    }
    if (keys.has(candidate)) yield candidate;
  }
  yield* coveringPartials;
}

export function mostSpecificKey(host: string, keys: HostKeys): string | undefined {
  for (const candidate of coveringKeys(host, keys)) return candidate;
  return undefined;
}

/** Whether a name must be qualified with a namespace. */
export function isShortName(host: string): boolean {
  return host !== '' && !host.includes('.') && !host.includes(':') && !isWildcard(host);
}

/** Resolves short names with `svc.<domain>`, the suffix of Kubernetes Services; without Kubernetes, only if a service of that name is known. */
export class HostNames {
  readonly domain: string;
  readonly isFixed: boolean;
  private readonly isKnownService: (hostname: string, namespace: string) => boolean;

  /**
   * @param domain such as `cluster.local`
   * @param isKnownService absent if services come from Kubernetes
   */
  constructor(domain: string, isKnownService?: (hostname: string, namespace: string) => boolean) {
    this.domain = domain;
    this.isFixed = isKnownService === undefined;
    this.isKnownService = isKnownService ?? (() => true);
  }

  qualify(host: string, namespace: string): string {
    if (!isShortName(host)) return host;
    const kubernetesHost = `${host}.${namespace}.svc.${this.domain}`;
    return this.isKnownService(kubernetesHost, namespace) ? kubernetesHost : `${host}.${namespace}`;
  }
}
