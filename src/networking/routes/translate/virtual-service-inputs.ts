import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import { destinationHosts } from '../../../model/push-context/resolve-virtual-service.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import { labelsText } from '../../inputs/input-text.ts';

interface Facts {
  readonly destinations: readonly string[];
  readonly matchesSources: boolean;
  readonly matchesNamespaces: boolean;
}

/** Hosts whose services and DestinationRules the routes depend on. */
export function destinationsOf(service: ResolvedVirtualService): readonly string[] {
  return facts(service).destinations;
}

/** Equal for shapes with equal routes. Usually empty, because few VirtualServices match client properties. */
export function shapeTextFor(service: ResolvedVirtualService | undefined, shape: ProxyShape): string {
  return service !== undefined && facts(service).matchesSources ? labelsText(shape.labels) : '';
}

/** Equal for namespaces with equal routes. Usually empty. */
export function namespaceTextFor(service: ResolvedVirtualService | undefined, namespace: string): string {
  return service !== undefined && facts(service).matchesNamespaces ? namespace : '';
}

/** Whether routes depend on the client, apart from the resolution of hosts. */
export function dependsOnClient(service: ResolvedVirtualService): boolean {
  const { matchesSources, matchesNamespaces } = facts(service);
  return matchesSources || matchesNamespaces;
}

const anyMatchesSources = memoizeByObject((services: readonly ResolvedVirtualService[]) =>
  services.some((service) => facts(service).matchesSources),
);

/** The shape's labels if any of the VirtualServices matches labels. */
export function labelsIfMatched(services: readonly ResolvedVirtualService[], shape: ProxyShape): string {
  return anyMatchesSources(services) ? labelsText(shape.labels) : '';
}

const anyMatchesNamespaces = memoizeByObject((services: readonly ResolvedVirtualService[]) =>
  services.some((service) => facts(service).matchesNamespaces),
);

export function namespaceIfMatched(services: readonly ResolvedVirtualService[], namespace: string): string {
  return anyMatchesNamespaces(services) ? namespace : '';
}

/** Hosts whose services and DestinationRules the routes of any of these VirtualServices depend on. */
export const destinationsOfAll: (services: readonly ResolvedVirtualService[]) => ReadonlySet<string> = memoizeByObject(
  (services) => new Set(services.flatMap((service) => destinationsOf(service))),
);

const facts = memoizeByObject((service: ResolvedVirtualService): Facts => {
  const { spec } = service.config;
  const matches = (spec.http ?? []).flatMap((route) => route.match ?? []);
  return {
    destinations: [...destinationHosts(spec)],
    matchesSources: matches.some(({ sourceLabels }) => Object.keys(sourceLabels ?? {}).length > 0),
    matchesNamespaces: matches.some(({ sourceNamespace }) => sourceNamespace !== undefined),
  };
});
