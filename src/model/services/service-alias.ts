/** Resolves aliases of services: ExternalName services of Kubernetes. */
import type { Service } from './service.ts';

export type FindService = (hostname: string) => Service | undefined;

/** Longer alias chains count as cyclic. */
const maxSteps = 8;

export function isAlias({ resolution }: Pick<Service, 'resolution'>): boolean {
  return resolution === 'Alias';
}

/** A service that is no alias is its own target. Returns `undefined` if the target is not a service of the mesh, or aliases are cyclic. */
export function aliasTarget(service: Service | undefined, findService: FindService): Service | undefined {
  const lastService = service && aliasChain(service, findService).at(-1);
  return lastService === undefined || isAlias(lastService) ? undefined : lastService;
}

export function aliasChain(service: Service, findService: FindService): readonly Service[] {
  const chain = [service];
  let nextService: Service | undefined = service;
  while (nextService !== undefined && isAlias(nextService) && chain.length <= maxSteps) {
    nextService = findService(stripDot(nextService.attributes?.externalName ?? ''));
    if (nextService !== undefined) chain.push(nextService);
  }
  return chain;
}

function stripDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

export function aliasesByTarget(
  services: readonly Service[],
  findService: FindService,
): ReadonlyMap<string, readonly Service[]> {
  const result = new Map<string, Service[]>();
  for (const service of services) {
    if (!isAlias(service)) continue;
    const target = aliasTarget(service, findService);
    if (target === undefined) continue;
    const targetAliases = result.get(target.hostname);
    if (targetAliases === undefined) result.set(target.hostname, [service]);
    else targetAliases.push(service);
  }
  return result;
}
