/** Subsets beyond a limit have no clusters, because the service would have too many. */
import { configKeyText } from '../../../model/config/config.ts';
import { isWildcard } from '../../../model/fields/hostname.ts';
import { maxServiceClusters, maxSubsets, maxWildcardSubsets } from '../../../model/kinds/object-limits.ts';
import { limitedSubsets } from '../../../model/services/limited-subsets.ts';
import type { FinderInput, NoteDiagnostic } from './find-diagnostics.ts';

/** Checks the clusters of clients in the service's namespace. */
export function* findSubsetsBeyondLimit(
  { context, configs }: FinderInput,
  reportDiagnostic: NoteDiagnostic,
): Iterable<void> {
  const counts = new Map<string, number>();
  for (const { namespace, name, spec } of configs.DestinationRule) {
    yield;
    counts.set(`${namespace}/${name}`, spec.subsets?.length ?? 0);
  }
  for (const service of context.services) {
    yield;
    const rule = context.destinationRuleFor(service.namespace, service);
    if (rule === undefined) continue;
    const { config, origins } = rule;
    const totalSubsets = origins.reduce((sum, key) => sum + (counts.get(`${key.namespace}/${key.name}`) ?? 0), 0);
    const subsetCount = config.spec.subsets?.length ?? 0;
    const builtCount = limitedSubsets(service, config.spec).length;
    const subsetLimit = isWildcard(config.spec.host) ? maxWildcardSubsets : maxSubsets;
    if (builtCount < subsetCount || (subsetCount === subsetLimit && totalSubsets > subsetLimit)) {
      reportDiagnostic(
        service.hostname,
        `${totalSubsets - builtCount} of ${totalSubsets} subsets of ${origins.slice(0, maxNamedRules).map(configKeyText).join(', ')} get no clusters: the limit is ` +
          `${subsetLimit} subsets for one host, and ${maxServiceClusters} clusters (ports x subsets)`,
        { objects: origins.map(configKeyText) },
      );
    }
  }
}

const maxNamedRules = 3;
