/** What the routes of a virtual service are made from, besides itself. */
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { destinationHosts } from '../../model/push-context/resolve-virtual-service.ts';
import type { ResolvedVirtualService } from '../../model/push-context/resolved-rules.ts';
import { labelsText } from '../inputs/input-text.ts';

interface Facts {
  readonly destinations: readonly string[];
  readonly matchesSources: boolean;
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

function facts(service: ResolvedVirtualService): Facts {
  let known = factsOf.get(service);
  if (known === undefined) {
    const { spec } = service.config;
    const matches = (spec.http ?? []).flatMap((route) => route.match ?? []);
    known = {
      destinations: [...destinationHosts(spec)],
      matchesSources: matches.some(({ sourceLabels }) => Object.keys(sourceLabels ?? {}).length > 0),
    };
    factsOf.set(service, known);
  }
  return known;
}
