/** Resolves aliases of services: ExternalName services of Kubernetes. */
import type { Service } from './service.ts';

export type FindService = (hostname: string) => Service | undefined;

/** Longer alias chains count as cyclic. */
const maxSteps = 8;

export function isAlias({ resolution }: Pick<Service, 'resolution'>): boolean {
  return resolution === 'Alias';
}

/**
 * Returns the final target of an alias, or a service that is no alias itself; `undefined` if the target is not a service of the mesh, or aliases are
 * cyclic.
 */
export function aliasTarget(service: Service | undefined, find: FindService): Service | undefined {
  const lastService = service && aliasChain(service, find).at(-1);
  return lastService === undefined || isAlias(lastService) ? undefined : lastService;
}

/** Returns a service and its successive known alias targets. */
export function aliasChain(service: Service, find: FindService): readonly Service[] {
  const chain = [service];
  let next: Service | undefined = service;
  while (next !== undefined && isAlias(next) && chain.length <= maxSteps) {
    next = find(stripDot(next.attributes?.externalName ?? ''));
    if (next !== undefined) chain.push(next);
  }
  return chain;
}

/** Removes the trailing dot of an absolute name. */
function stripDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

export function aliasesByTarget(
  services: readonly Service[],
  find: FindService,
): ReadonlyMap<string, readonly Service[]> {
  const result = new Map<string, Service[]>();
  for (const service of services) {
    if (!isAlias(service)) continue;
    const target = aliasTarget(service, find);
    if (target === undefined) continue;
    const targetAliases = result.get(target.hostname);
    if (targetAliases === undefined) result.set(target.hostname, [service]);
    else targetAliases.push(service);
  }
  return result;
}
