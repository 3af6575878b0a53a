import { listDiff } from '../../../model/collections/list-diff.ts';
import { isHostWithin, isWildcard } from '../../../model/fields/hostname.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import type { RuleRevision } from '../../../model/push-context/rule-revision.ts';
import type { Service } from '../../../model/services/service.ts';
import type { PlannedHosts } from './planned-routes.ts';
import type { CachedVirtualHost } from './sidecar-virtual-hosts.ts';

export interface ChangedHosts {
  readonly names: ReadonlySet<string>;
  readonly wildcards: readonly string[];
}

/** Returns `undefined` if any host may have changed. */
export function changedSince(
  previous: PlannedHosts,
  services: readonly Service[],
  destinationRuleRevision: RuleRevision,
): ChangedHosts | undefined {
  const hosts = destinationRuleRevision.changedSince(previous.destinationRuleRevision);
  if (hosts === undefined) return undefined;
  const { removed, added } = listDiff(previous.services, services);
  const names = new Set([...hosts, ...[...removed, ...added].map(({ hostname }) => hostname)]);
  return { names, wildcards: [...hosts].filter(isWildcard) };
}

function routesToChangedHost(
  { names, wildcards }: ChangedHosts,
  { routes: { destinationHosts } }: CachedVirtualHost,
): boolean {
  if (names.size === 0) return false;
  return destinationHosts.some((host) => names.has(host) || wildcards.some((wildcard) => isHostWithin(host, wildcard)));
}

export function isHostUnchanged(
  host: CachedVirtualHost,
  current: ResolvedVirtualService | undefined,
  changedHosts: ChangedHosts,
): boolean {
  return host.virtualService === current && !routesToChangedHost(changedHosts, host);
}
