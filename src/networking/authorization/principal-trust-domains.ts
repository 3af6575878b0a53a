/** In policies, this name means the trust domain of the mesh. */
const localTrustDomain = 'cluster.local';

/**
 * Expands `td1/ns/shop/sa/web` to all trust domains of the mesh if `td1` is one of them. A domain with a leading `*` (`*-td/ns/…`) stays. If it
 * matches a domain of the mesh, all domains of the mesh are added. Foreign domains and the domain `*` are unchanged.
 */
export function principalsInAllTrustDomains(principal: string, domains: readonly string[]): readonly string[] {
  const slash = principal.indexOf('/');
  if (slash < 1) return [principal];
  const [domain, path] = [principal.slice(0, slash), principal.slice(slash)];
  if (domain === '*') return [principal];
  const isKnownDomain = domain.startsWith('*')
    ? domains.some((meshDomain) => meshDomain.endsWith(domain.slice(1)))
    : domain === localTrustDomain || domains.includes(domain);
  if (!isKnownDomain) return [principal];
  const translatedPrincipals = domains.map((trustDomain) => `${trustDomain}${path}`);
  return domain.startsWith('*') ? [principal, ...translatedPrincipals] : translatedPrincipals;
}
