import type { DestinationRule, Subset } from '../kinds/destinations/destination-rule.ts';
import { maxServiceClusters } from '../kinds/object-limits.ts';
import type { Service } from './service.ts';

/**
 * Limits the clusters of a service to {@link maxServiceClusters}, because several DestinationRules and ports multiply the limits of single objects.
 */
export function limitedSubsets(
  { ports }: Pick<Service, 'ports'>,
  rule: Pick<DestinationRule, 'subsets'> | undefined,
): readonly Subset[] {
  const subsets = rule?.subsets ?? [];
  const max = Math.max(Math.floor(maxServiceClusters / Math.max(ports.length, 1)) - 1, 0);
  return subsets.length <= max ? subsets : subsets.slice(0, max);
}
