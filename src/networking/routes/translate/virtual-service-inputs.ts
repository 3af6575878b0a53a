import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import { destinationHosts } from '../../../model/push-context/resolve-virtual-service.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import { labelsText } from '../../inputs/input-text.ts';

interface SourceFacts {
  readonly destinations: readonly string[];
  readonly matchesSources: boolean;
  readonly matchesNamespaces: boolean;
}

export function destinationsOf(virtualService: ResolvedVirtualService): readonly string[] {
  return sourceFactsOf(virtualService).destinations;
}

/** Returns equal texts for shapes with equal routes. Usually empty, because few VirtualServices match client properties. */
export function shapeTextFor(virtualService: ResolvedVirtualService | undefined, shape: ProxyShape): string {
  return virtualService !== undefined && sourceFactsOf(virtualService).matchesSources ? labelsText(shape.labels) : '';
}

export function namespaceTextFor(virtualService: ResolvedVirtualService | undefined, namespace: string): string {
  return virtualService !== undefined && sourceFactsOf(virtualService).matchesNamespaces ? namespace : '';
}

export function dependsOnClient(virtualService: ResolvedVirtualService): boolean {
  const { matchesSources, matchesNamespaces } = sourceFactsOf(virtualService);
  return matchesSources || matchesNamespaces;
}

const anyMatchesSources = memoizeByObject((virtualServices: readonly ResolvedVirtualService[]) =>
  virtualServices.some((virtualService) => sourceFactsOf(virtualService).matchesSources),
);

export function labelsIfMatched(virtualServices: readonly ResolvedVirtualService[], shape: ProxyShape): string {
  return anyMatchesSources(virtualServices) ? labelsText(shape.labels) : '';
}

const anyMatchesNamespaces = memoizeByObject((virtualServices: readonly ResolvedVirtualService[]) =>
  virtualServices.some((virtualService) => sourceFactsOf(virtualService).matchesNamespaces),
);

export function namespaceIfMatched(virtualServices: readonly ResolvedVirtualService[], namespace: string): string {
  return anyMatchesNamespaces(virtualServices) ? namespace : '';
}

export const destinationsOfAll: (virtualServices: readonly ResolvedVirtualService[]) => ReadonlySet<string> =
  memoizeByObject(
    (virtualServices) => new Set(virtualServices.flatMap((virtualService) => destinationsOf(virtualService))),
  );

const sourceFactsOf = memoizeByObject((virtualService: ResolvedVirtualService): SourceFacts => {
  const { spec } = virtualService.config;
  const matches = (spec.http ?? []).flatMap((route) => route.match ?? []);
  return {
    destinations: [...destinationHosts(spec)],
    matchesSources: matches.some(({ sourceLabels }) => Object.keys(sourceLabels ?? {}).length > 0),
    matchesNamespaces: matches.some(({ sourceNamespace }) => sourceNamespace !== undefined),
  };
});
