import type { MeshConfig } from './mesh-config.ts';

export function trustDomainsOf({
  trustDomain,
  trustDomainAliases,
}: Pick<MeshConfig, 'trustDomain' | 'trustDomainAliases'>): readonly string[] {
  return [...new Set([trustDomain, ...trustDomainAliases])];
}

const identity = /^spiffe:\/\/([^/]+)(\/ns\/[^/]+\/sa\/[^/]+)$/;

/** Includes former trust domains, because their certificates stay valid until renewal. */
export function identitiesInDomains(domains: readonly string[], id: string): readonly string[] {
  const [, domain, account] = identity.exec(id) ?? [];
  return domain !== undefined && domains.includes(domain)
    ? domains.map((trustDomain) => `spiffe://${trustDomain}${account}`)
    : [id];
}
