import { isIPv6 } from 'node:net';
import { isWildcard } from '../../../model/fields/hostname.ts';
import { isUnspecified } from '../../../runtime/addresses/unspecified-address.ts';
import { bracketIpv6, isCidr } from '../../messages/address.ts';

export interface NamedService {
  readonly hostname: string;
  readonly addresses: readonly string[];
  readonly aliases?: readonly string[];
  /** Whether the service is headless, so that its pods have DNS names. */
  readonly headless?: boolean;
}

export interface DomainOptions {
  readonly absoluteNames?: boolean;
  /** The client's search domain, such as `shop.svc.cluster.local`. */
  readonly proxyDomain: string;
  /** Set for a listener of all ports, whose domains must contain the port. */
  readonly port?: number;
}

export function domainsOf(service: NamedService, options: DomainOptions): readonly string[] {
  const { proxyDomain, port, absoluteNames = true } = options;
  const namesWithPort = (hostname: string): string[] => [
    ...hostNameForms(hostname, absoluteNames),
    ...shortNames(hostname, proxyDomain),
  ];
  const names = namesWithPort(service.hostname);
  const podNames = service.headless ? names.map((name) => `*.${name}`) : [];
  const hostDomains = [...names, ...podNames, ...(service.aliases ?? []).flatMap(namesWithPort)];
  const addresses = service.addresses.filter((address) => !isCidr(address) && !isUnspecified(address));
  const domains = [...new Set([...hostDomains, ...addresses.map(bracketIpv6)])];
  return port === undefined ? domains : domains.flatMap((domain) => [domain, `${domain}:${port}`]);
}

function hostNameForms(hostname: string, absoluteNames: boolean): string[] {
  if (isIPv6(hostname)) return [bracketIpv6(hostname)];
  return isWildcard(hostname) || !absoluteNames ? [hostname] : [hostname, `${hostname}.`];
}

/**
 * Names that a resolver completes with the search domain, such as `reviews`, `reviews.shop` and `reviews.shop.svc` in namespace `shop`. Clients of
 * other namespaces cannot use the first.
 */
export function shortNames(hostname: string, proxyDomain: string): readonly string[] {
  const sharedCount = countSharedLabels(hostname, proxyDomain);
  if (sharedCount === 0) return [];
  const host = hostname.split('.');
  const uniqueForms = host.slice(0, host.length - sharedCount);
  const names = [uniqueForms.join('.'), host.slice(0, uniqueForms.length + 1).join('.')];
  // In the client's own namespace, the label `svc` is one position later.
  if (host[uniqueForms.length + 1] === 'svc') names.push(host.slice(0, uniqueForms.length + 2).join('.'));
  return names;
}

/**
 * Number of trailing labels that name and search domain have in common, which determines the short names. 0 for a
 * wildcard, which has no short names.
 */
export function countSharedLabels(hostname: string, proxyDomain: string): number {
  if (isWildcard(hostname)) return 0;
  let sharedCount = 0;
  // Excludes the first label of the host, because the short name must not be empty.
  let [nameOffset, domainOffset] = [hostname.length, proxyDomain.length];
  while (nameOffset > 0 && domainOffset > 0) {
    const [dotInName, dotInDomain] = [
      hostname.lastIndexOf('.', nameOffset - 1),
      proxyDomain.lastIndexOf('.', domainOffset - 1),
    ];
    if (dotInName < 0 || nameOffset - dotInName !== domainOffset - dotInDomain) return sharedCount;
    if (hostname.slice(dotInName + 1, nameOffset) !== proxyDomain.slice(dotInDomain + 1, domainOffset))
      return sharedCount;
    sharedCount++;
    [nameOffset, domainOffset] = [dotInName, dotInDomain];
  }
  return sharedCount;
}
