/** The names of the mesh's trust domain (spec/discovery.md §3). */
import type { MeshConfig } from './mesh-config.ts';

/** The mesh's own, then those that it is known by as well. */
export function trustDomainsOf({
  trustDomain,
  trustDomainAliases,
}: Pick<MeshConfig, 'trustDomain' | 'trustDomainAliases'>): readonly string[] {
  return [...new Set([trustDomain, ...trustDomainAliases])];
}
