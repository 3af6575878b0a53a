/** A root VirtualService's route with the routes of its delegate (spec/discovery.md §8.6 "delegate"). Names are resolved. */

import type { StringMatch, ValueMatch } from '../kinds/string-match.ts';
import type { HttpMatchRequest, HttpRoute } from '../kinds/virtual-service.ts';

export interface MergedRoute {
  readonly route: HttpRoute;
  /** Of the delegate's route among its routes. */
  readonly index: number;
}

/** One route for each route of the delegate whose every match fits some match of the root. */
export function mergeDelegateRoutes(root: HttpRoute, delegateRoutes: readonly HttpRoute[]): MergedRoute[] {
  return delegateRoutes.flatMap((route, index) => {
    const match = mergedMatches(root.match ?? [], route.match ?? []);
    return match === undefined ? [] : [{ route: withRootActions(root, route, match), index }];
  });
}

/** Undefined when a match of the delegate fits none of the root's: the whole route is dropped then. */
function mergedMatches(
  root: readonly HttpMatchRequest[],
  delegate: readonly HttpMatchRequest[],
): readonly HttpMatchRequest[] | undefined {
  if (root.length === 0) return delegate;
  if (delegate.length === 0) return root;
  const merged: HttpMatchRequest[] = [];
  for (const leaf of delegate) {
    const fitting = root.filter((outer) => !conflicts(outer, leaf));
    if (fitting.length === 0) return undefined;
    merged.push(...fitting.map((outer) => mergeMatch(outer, leaf)));
  }
  return merged;
}

function mergeMatch(root: HttpMatchRequest, leaf: HttpMatchRequest): HttpMatchRequest {
  const name = joinedName(root.name, leaf.name);
  return {
    ...root,
    ...leaf,
    ...(name !== undefined && { name }),
    ...united('headers', root, leaf),
    ...united('withoutHeaders', root, leaf),
    ...united('queryParams', root, leaf),
    ...united('sourceLabels', root, leaf),
  };
}

function united<K extends 'headers' | 'withoutHeaders' | 'queryParams' | 'sourceLabels'>(
  key: K,
  root: HttpMatchRequest,
  leaf: HttpMatchRequest,
): { [P in K]?: HttpMatchRequest[K] } {
  if (root[key] === undefined && leaf[key] === undefined) return {};
  return { [key]: { ...root[key], ...leaf[key] } } as { [P in K]?: HttpMatchRequest[K] };
}

function joinedName(root: string | undefined, leaf: string | undefined): string | undefined {
  return root !== undefined && leaf !== undefined ? `${root}-${leaf}` : (leaf ?? root);
}

/** Whether a delegate's match reaches outside of the root's. */
function conflicts(root: HttpMatchRequest, leaf: HttpMatchRequest): boolean {
  for (const field of ['uri', 'scheme', 'method', 'authority'] as const) {
    if (reachesOutside(root[field], leaf[field])) return true;
  }
  for (const field of ['headers', 'withoutHeaders', 'queryParams'] as const) {
    for (const [key, match] of Object.entries(leaf[field] ?? {})) {
      if (reachesOutside(root[field]?.[key], match)) return true;
    }
  }
  for (const [key, value] of Object.entries(leaf.sourceLabels ?? {})) {
    if ((root.sourceLabels?.[key] ?? value) !== value) return true;
  }
  const gatewaysFit =
    !root.gateways?.length || (leaf.gateways ?? []).every((gateway) => root.gateways!.includes(gateway));
  return (
    (root.ignoreUriCase ?? false) !== (leaf.ignoreUriCase ?? false) ||
    differ(root.port, leaf.port) ||
    differ(root.sourceNamespace, leaf.sourceNamespace) ||
    !gatewaysFit
  );
}

function differ<A>(root: A | undefined, leaf: A | undefined): boolean {
  return root !== undefined && leaf !== undefined && root !== leaf;
}

function reachesOutside(root: ValueMatch | undefined, leaf: ValueMatch | undefined): boolean {
  if (root === undefined || leaf === undefined || 'present' in root) return false;
  if ('present' in leaf) return true;
  if ('prefix' in root) return !startOf(leaf)?.startsWith(root.prefix);
  if ('exact' in root) return !('exact' in leaf && leaf.exact === root.exact);
  // Two expressions can be compared no further.
  return !('regex' in leaf && leaf.regex === root.regex);
}

function startOf(match: StringMatch): string | undefined {
  return 'exact' in match ? match.exact : 'prefix' in match ? match.prefix : undefined;
}

/** What the delegate's route does not say, the root's route says: all but which requests these are, and where they go. */
function withRootActions(root: HttpRoute, route: HttpRoute, match: readonly HttpMatchRequest[]): HttpRoute {
  const { mirror, mirrors, ...others } = root;
  const { match: _, delegate, route: destinations, redirect, missingDestinationStatus, ...actions } = others;
  const ownMirrors = route.mirror !== undefined || (route.mirrors?.length ?? 0) > 0;
  const name = joinedName(root.name, route.name);
  return {
    ...actions,
    ...(!ownMirrors && mirror && { mirror }),
    ...(!ownMirrors && mirrors && { mirrors }),
    ...route,
    match,
    ...(name !== undefined && { name }),
  };
}
