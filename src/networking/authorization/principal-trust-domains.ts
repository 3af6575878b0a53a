/** Trust domains of the mesh in the principals of policies (spec/discovery.md §8.10). */

/** The name by which policies mean the mesh's own trust domain, whatever that is called. */
const anyMesh = 'cluster.local';

/**
 * `td1/ns/shop/sa/web` under every trust domain of the mesh, if `td1` is one of them. Others stay as they are: foreign
 * ones, and those that begin with `*` and so stand for any. A `*` before the rest of a trust domain (`*-td/ns/…`) stays
 * as well and brings the mesh's own along when it stands for one of them.
 */
export function underAllDomains(principal: string, domains: readonly string[]): readonly string[] {
  const slash = principal.indexOf('/');
  if (slash < 1) return [principal];
  const [domain, rest] = [principal.slice(0, slash), principal.slice(slash)];
  if (domain === '*') return [principal];
  const isOwn = domain.startsWith('*')
    ? domains.some((known) => known.endsWith(domain.slice(1)))
    : domain === anyMesh || domains.includes(domain);
  if (!isOwn) return [principal];
  const known = domains.map((own) => `${own}${rest}`);
  return domain.startsWith('*') ? [principal, ...known] : known;
}
