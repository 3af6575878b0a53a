import { compareAge } from '../config/config.ts';
import { isPublic } from '../services/visibility.ts';
import type { ResolvedVirtualService } from './resolved-rules.ts';

/**
 * Precedence among virtual services of a host for clients of a namespace: non-public ones of that namespace, those exported to it by name, public
 * ones, each oldest first. A namespace can thus override its own routing.
 */
export function precedenceOrderFor(
  namespace: string,
): (a: ResolvedVirtualService, b: ResolvedVirtualService) => number {
  return (a, b) => exportRank(a, namespace) - exportRank(b, namespace) || compareAge(a.config, b.config);
}

function exportRank({ config, exportTo }: ResolvedVirtualService, namespace: string): number {
  if (isPublic(exportTo)) return 2;
  return config.namespace === namespace ? 0 : 1;
}
