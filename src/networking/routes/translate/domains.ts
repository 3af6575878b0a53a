/** The names under which clients ask for a service (spec/discovery.md §8.5, domains). */
import { isIPv6 } from 'node:net';
import { isWildcard } from '../../../model/fields/hostname.ts';
import { isUnspecified } from '../../../runtime/addresses/unspecified-address.ts';
import { bracketed, isCidr } from '../../messages/address.ts';

export interface NamedService {
  readonly hostname: string;
  readonly addresses: readonly string[];
  /** Other names for it. */
  readonly aliases?: readonly string[];
  /** Headless: its pods are asked for by name. */
  readonly headless?: boolean;
}

export interface DomainOptions {
  /** Names with a dot at their end are served as well; absent: they are. */
  readonly absoluteNames?: boolean;
  /** `shop.svc.cluster.local`: the search domain of the client. */
  readonly proxyDomain: string;
  /** Set where the port cannot be left out of the match: a listener that serves all ports. */
  readonly port?: number;
}

export function domainsOf(service: NamedService, options: DomainOptions): readonly string[] {
  const { proxyDomain, port, absoluteNames = true } = options;
  const formsOf = (hostname: string): string[] => [
    ...hostForms(hostname, absoluteNames),
    ...shortNames(hostname, proxyDomain),
  ];
  const names = formsOf(service.hostname);
  const ofPods = service.headless ? names.map((name) => `*.${name}`) : [];
  const all = [...names, ...ofPods, ...(service.aliases ?? []).flatMap(formsOf)];
  const addresses = service.addresses.filter((address) => !isCidr(address) && !isUnspecified(address));
  const domains = [...new Set([...all, ...addresses.map(bracketed)])];
  return port === undefined ? domains : domains.flatMap((domain) => [domain, `${domain}:${port}`]);
}

/** The forms of a host's name, also with the trailing dot of an absolute one. */
function hostForms(hostname: string, absoluteNames: boolean): string[] {
  if (isIPv6(hostname)) return [bracketed(hostname)];
  return isWildcard(hostname) || !absoluteNames ? [hostname] : [hostname, `${hostname}.`];
}

/**
 * What a resolver would complete with the client's search domain: `reviews`, `reviews.shop`, `reviews.shop.svc` for a
 * client of the namespace `shop`; without the bare name for clients of others.
 */
export function shortNames(hostname: string, proxyDomain: string): readonly string[] {
  const shared = sharedLabels(hostname, proxyDomain);
  if (shared === 0) return [];
  const host = hostname.split('.');
  const unique = host.slice(0, host.length - shared);
  const names = [unique.join('.'), host.slice(0, unique.length + 1).join('.')];
  // A Kubernetes name of the client's own namespace: `svc` stands one label further.
  if (host[unique.length + 1] === 'svc') names.push(host.slice(0, unique.length + 2).join('.'));
  return names;
}

/**
 * How many labels at their end a name and a client's search domain have in common: all that the client's short names for it
 * depend on. 0 for a wildcard, which has none.
 */
export function sharedLabels(hostname: string, proxyDomain: string): number {
  if (isWildcard(hostname)) return 0;
  let shared = 0;
  // One label of the name must be left for a search domain to complete.
  let [inName, inDomain] = [hostname.length, proxyDomain.length];
  while (inName > 0 && inDomain > 0) {
    const [dotInName, dotInDomain] = [
      hostname.lastIndexOf('.', inName - 1),
      proxyDomain.lastIndexOf('.', inDomain - 1),
    ];
    if (dotInName < 0 || inName - dotInName !== inDomain - dotInDomain) return shared;
    if (hostname.slice(dotInName + 1, inName) !== proxyDomain.slice(dotInDomain + 1, inDomain)) return shared;
    shared++;
    [inName, inDomain] = [dotInName, dotInDomain];
  }
  return shared;
}
