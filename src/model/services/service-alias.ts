/** Services that are another name for a service: ExternalName services of Kubernetes (spec/discovery.md §5.2, §5.4). */
import type { Service } from './service.ts';

export type FindService = (hostname: string) => Service | undefined;

/** Aliases that lead on to aliases: more of them are taken for a circle. */
const maxSteps = 8;

export function isAlias({ resolution }: Pick<Service, 'resolution'>): boolean {
  return resolution === 'Alias';
}

/**
 * What a service stands for in the end: itself, unless it is an alias. Undefined when that is no service of the mesh, or
 * aliases go round in a circle.
 */
export function serviceBehind(service: Service | undefined, find: FindService): Service | undefined {
  const last = service && chainBehind(service, find).at(-1);
  return last === undefined || isAlias(last) ? undefined : last;
}

/** A service, and step by step what it stands for, as far as that is known. */
export function chainBehind(service: Service, find: FindService): readonly Service[] {
  const chain = [service];
  let next: Service | undefined = service;
  while (next !== undefined && isAlias(next) && chain.length <= maxSteps) {
    next = find(withoutDot(next.attributes?.externalName ?? ''));
    if (next !== undefined) chain.push(next);
  }
  return chain;
}

/** An absolute name may be written with a dot at its end. */
function withoutDot(name: string): string {
  return name.endsWith('.') ? name.slice(0, -1) : name;
}

/** Aliases of a list, by the host name of what they stand for. */
export function aliasesByTarget(
  services: readonly Service[],
  find: FindService,
): ReadonlyMap<string, readonly Service[]> {
  const result = new Map<string, Service[]>();
  for (const service of services) {
    if (!isAlias(service)) continue;
    const target = serviceBehind(service, find);
    if (target === undefined) continue;
    const known = result.get(target.hostname);
    if (known === undefined) result.set(target.hostname, [service]);
    else known.push(service);
  }
  return result;
}
