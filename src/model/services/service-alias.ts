/** Services that are aliases of other services: ExternalName services of Kubernetes (spec/discovery.md §5.2, §5.4). */
import type { Service } from './service.ts';

export type FindService = (hostname: string) => Service | undefined;

/** Longer alias chains count as cyclic. */
const maxSteps = 8;

export function isAlias({ resolution }: Pick<Service, 'resolution'>): boolean {
  return resolution === 'Alias';
}

/**
 * The final target of a service, itself unless it is an alias. `undefined` if the target is not a service of the mesh, or aliases are cyclic.
 */
export function aliasTarget(service: Service | undefined, find: FindService): Service | undefined {
  const last = service && aliasChain(service, find).at(-1);
  return last === undefined || isAlias(last) ? undefined : last;
}

/** A service and its successive alias targets, as far as they are known. */
export function aliasChain(service: Service, find: FindService): readonly Service[] {
  const chain = [service];
  let next: Service | undefined = service;
  while (next !== undefined && isAlias(next) && chain.length <= maxSteps) {
    next = find(withoutDot(next.attributes?.externalName ?? ''));
    if (next !== undefined) chain.push(next);
  }
  return chain;
}

/** An absolute name may have a trailing dot. */
function withoutDot(name: string): string {
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
    const known = result.get(target.hostname);
    if (known === undefined) result.set(target.hostname, [service]);
    else known.push(service);
  }
  return result;
}
