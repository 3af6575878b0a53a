/** Subsets of a service for which clusters are built. Several DestinationRules and ports multiply what each of them may have. */
import type { DestinationRule, Subset } from '../kinds/destinations/destination-rule.ts';
import { maxServiceClusters } from '../kinds/object-limits.ts';
import type { Service } from './service.ts';

/** The first subsets of the rule, at most {@link maxServiceClusters} clusters with all ports. */
export function limitedSubsets(
  { ports }: Pick<Service, 'ports'>,
  rule: Pick<DestinationRule, 'subsets'> | undefined,
): readonly Subset[] {
  const subsets = rule?.subsets ?? [];
  const max = Math.max(Math.floor(maxServiceClusters / Math.max(ports.length, 1)) - 1, 0);
  return subsets.length <= max ? subsets : subsets.slice(0, max);
}
