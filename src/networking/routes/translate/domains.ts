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
  const formsOf = (hostname: string): string[] => [
    ...hostForms(hostname, absoluteNames),
    ...shortNames(hostname, proxyDomain),
  ];
  const names = formsOf(service.hostname);
  const podNames = service.headless ? names.map((name) => `*.${name}`) : [];
  const hostDomains = [...names, ...podNames, ...(service.aliases ?? []).flatMap(formsOf)];
  const addresses = service.addresses.filter((address) => !isCidr(address) && !isUnspecified(address));
  const domains = [...new Set([...hostDomains, ...addresses.map(bracketIpv6)])];
  return port === undefined ? domains : domains.flatMap((domain) => [domain, `${domain}:${port}`]);
}

function hostForms(hostname: string, absoluteNames: boolean): string[] {
  if (isIPv6(hostname)) return [bracketIpv6(hostname)];
  return isWildcard(hostname) || !absoluteNames ? [hostname] : [hostname, `${hostname}.`];
}

/**
 * Names that a resolver completes with the search domain, such as `reviews`, `reviews.shop` and `reviews.shop.svc` in namespace `shop`. Clients of
 * other namespaces cannot use the first.
 */
export function shortNames(hostname: string, proxyDomain: string): readonly string[] {
  const sharedCount = sharedLabels(hostname, proxyDomain);
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
export function sharedLabels(hostname: string, proxyDomain: string): number {
  if (isWildcard(hostname)) return 0;
  let sharedCount = 0;
  // Excludes the first label of the host, because the short name must not be empty.
  let [inName, inDomain] = [hostname.length, proxyDomain.length];
  while (inName > 0 && inDomain > 0) {
    const [dotInName, dotInDomain] = [
      hostname.lastIndexOf('.', inName - 1),
      proxyDomain.lastIndexOf('.', inDomain - 1),
    ];
    if (dotInName < 0 || inName - dotInName !== inDomain - dotInDomain) return sharedCount;
    if (hostname.slice(dotInName + 1, inName) !== proxyDomain.slice(dotInDomain + 1, inDomain)) return sharedCount;
    sharedCount++;
    [inName, inDomain] = [dotInName, dotInDomain];
  }
  return sharedCount;
}
