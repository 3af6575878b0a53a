/** Which of several virtual services for one host holds for a client. */
import { byAge } from '../config/config.ts';
import { isPublic } from '../services/visibility.ts';
import type { ResolvedVirtualService } from './resolved-rules.ts';

/**
 * The order for clients of a namespace: what is their own namespace's and not for everybody, then what is exported to it by
 * name, then what everybody sees, each the oldest first. So a namespace can route its requests otherwise than all others.
 */
export function byHolding(namespace: string): (a: ResolvedVirtualService, b: ResolvedVirtualService) => number {
  return (a, b) => rankFor(a, namespace) - rankFor(b, namespace) || byAge(a.config, b.config);
}

/** The less, the earlier it holds. */
function rankFor({ config, exportTo }: ResolvedVirtualService, namespace: string): number {
  if (isPublic(exportTo)) return 2;
  return config.namespace === namespace ? 0 : 1;
}
