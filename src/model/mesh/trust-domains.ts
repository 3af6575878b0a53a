/** The names of the mesh's trust domain (spec/discovery.md §3). */
import type { MeshConfig } from './mesh-config.ts';

/** The mesh's own, then those that it is known by as well. */
export function trustDomainsOf({
  trustDomain,
  trustDomainAliases,
}: Pick<MeshConfig, 'trustDomain' | 'trustDomainAliases'>): readonly string[] {
  return [...new Set([trustDomain, ...trustDomainAliases])];
}

const identity = /^spiffe:\/\/([^/]+)(\/ns\/[^/]+\/sa\/[^/]+)$/;

/**
 * What a workload may be called: a SPIFFE id of the mesh under each of its names, as certificates of a former one are good
 * until they are renewed. Others, and names that are none, are what they are.
 */
export function identitiesUnder(domains: readonly string[], id: string): readonly string[] {
  const [, domain, account] = identity.exec(id) ?? [];
  return domain !== undefined && domains.includes(domain) ? domains.map((one) => `spiffe://${one}${account}`) : [id];
}
