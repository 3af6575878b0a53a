import type { MeshConfig } from './mesh-config.ts';

/** Returns the trust domain, followed by its aliases. */
export function trustDomainsOf({
  trustDomain,
  trustDomainAliases,
}: Pick<MeshConfig, 'trustDomain' | 'trustDomainAliases'>): readonly string[] {
  return [...new Set([trustDomain, ...trustDomainAliases])];
}

const identity = /^spiffe:\/\/([^/]+)(\/ns\/[^/]+\/sa\/[^/]+)$/;

/** SPIFFE IDs of a workload in all trust domains of the mesh, because certificates of a former one stay valid until renewal. */
export function identitiesUnder(domains: readonly string[], id: string): readonly string[] {
  const [, domain, account] = identity.exec(id) ?? [];
  return domain !== undefined && domains.includes(domain)
    ? domains.map((trustDomain) => `spiffe://${trustDomain}${account}`)
    : [id];
}
