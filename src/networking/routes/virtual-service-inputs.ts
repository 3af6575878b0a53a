/** What the routes of a virtual service are made from, besides itself. */
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { destinationHosts } from '../../model/push-context/resolve-virtual-service.ts';
import type { ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import { labelsText } from '../inputs/input-text.ts';

interface Facts {
  readonly destinations: readonly string[];
  readonly matchesSources: boolean;
  readonly matchesNamespaces: boolean;
}

const factsOf = new WeakMap<ResolvedVirtualService, Facts>();

/** Hosts whose service and destination rule the routes depend on. */
export function destinationsOf(service: ResolvedVirtualService): readonly string[] {
  return facts(service).destinations;
}

/** Equal for shapes that the routes are equal for; almost always empty: few rules look at who the client is. */
export function shapeTextFor(service: ResolvedVirtualService | undefined, shape: ProxyShape): string {
  return service !== undefined && facts(service).matchesSources ? labelsText(shape.labels) : '';
}

/** Equal for namespaces that the routes are equal for; almost always empty. */
export function namespaceTextFor(service: ResolvedVirtualService | undefined, namespace: string): string {
  return service !== undefined && facts(service).matchesNamespaces ? namespace : '';
}

const listsThatMatch = new WeakMap<readonly ResolvedVirtualService[], boolean>();

/** Labels of the shape, if any of the virtual services looks at them. */
export function labelsThatCount(services: readonly ResolvedVirtualService[], shape: ProxyShape): string {
  let matches = listsThatMatch.get(services);
  if (matches === undefined) {
    matches = services.some((service) => facts(service).matchesSources);
    listsThatMatch.set(services, matches);
  }
  return matches ? labelsText(shape.labels) : '';
}

function facts(service: ResolvedVirtualService): Facts {
  let known = factsOf.get(service);
  if (known === undefined) {
    const { spec } = service.config;
    const matches = (spec.http ?? []).flatMap((route) => route.match ?? []);
    known = {
      destinations: [...destinationHosts(spec)],
      matchesSources: matches.some(({ sourceLabels }) => Object.keys(sourceLabels ?? {}).length > 0),
      matchesNamespaces: matches.some(({ sourceNamespace }) => sourceNamespace !== undefined),
    };
    factsOf.set(service, known);
  }
  return known;
}
