/** Merges a root VirtualService's route with the routes of its delegate. Names in both are already resolved. */

import { memoizeByObject } from '../collections/memoize-by-object.ts';
import type { StringMatch, ValueMatch } from '../kinds/virtual-service/string-match.ts';
import type { HttpMatchRequest, HttpRoute } from '../kinds/virtual-service/virtual-service.ts';

export interface MergedRoute {
  readonly route: HttpRoute;
  readonly index: number;
}

/** Drops delegate routes with a match that is compatible with no match of the root. */
export function mergeDelegateRoutes(root: HttpRoute, delegateRoutes: readonly HttpRoute[]): MergedRoute[] {
  return delegateRoutes.flatMap((route, index) => {
    const match = mergedMatches(root.match ?? [], route.match ?? []);
    return match === undefined ? [] : [{ route: withRootActions(root, route, match), index }];
  });
}

function mergedMatches(
  root: readonly HttpMatchRequest[],
  delegate: readonly HttpMatchRequest[],
): readonly HttpMatchRequest[] | undefined {
  if (root.length === 0) return delegate;
  if (delegate.length === 0) return root;
  const combinations: HttpMatchRequest[] = [];
  for (const leaf of delegate) {
    const compatibleMatches = root.filter((rootMatch) => !areConflicting(rootMatch, leaf));
    if (compatibleMatches.length === 0) return undefined;
    combinations.push(...compatibleMatches.map((outer) => mergeMatch(outer, leaf)));
  }
  return combinations;
}

interface Condition<V> {
  reachesOutside(root: V | undefined, leaf: V | undefined): boolean;
  merge(root: V | undefined, leaf: V | undefined): V | undefined;
}

function singleCondition<V>(reachesOutside: Condition<V>['reachesOutside']): Condition<V> {
  return { reachesOutside, merge: (root, leaf) => leaf ?? root };
}

function conditionByKey<V>(reachesOutside: Condition<V>['reachesOutside']): Condition<Readonly<Record<string, V>>> {
  return {
    reachesOutside: (root, leaf) =>
      Object.entries(leaf ?? {}).some(([key, value]) => reachesOutside(root?.[key], value)),
    merge: (root, leaf) => (root === undefined && leaf === undefined ? undefined : { ...root, ...leaf }),
  };
}

/** If root and delegate exclude the same header, the wider exclusion applies, because it matches fewer requests. */
const exclusions: Condition<Readonly<Record<string, ValueMatch>>> = {
  reachesOutside: (root, leaf) =>
    Object.entries(leaf ?? {}).some(
      ([name, excludedValue]) =>
        valueReachesOutside(root?.[name], excludedValue) && valueReachesOutside(excludedValue, root?.[name]),
    ),
  merge: (root, leaf) => {
    if (root === undefined || leaf === undefined) return leaf ?? root;
    const widerEntries = Object.entries(root).filter(([name, outer]) => valueReachesOutside(leaf[name], outer));
    return { ...root, ...leaf, ...Object.fromEntries(widerEntries) };
  },
};

const restrictsNothing = singleCondition<never>(() => false);

/** Conditions for every field of a match. Without one of them, a delegate could match requests that the root excludes. */
const conditions: { readonly [F in keyof HttpMatchRequest]-?: Condition<NonNullable<HttpMatchRequest[F]>> } = {
  name: { reachesOutside: () => false, merge: joinedName },
  uri: singleCondition<StringMatch>(valueReachesOutside),
  scheme: singleCondition<StringMatch>(valueReachesOutside),
  method: singleCondition<StringMatch>(valueReachesOutside),
  authority: singleCondition<StringMatch>(valueReachesOutside),
  headers: conditionByKey<ValueMatch>(valueReachesOutside),
  withoutHeaders: exclusions,
  queryParams: conditionByKey<ValueMatch>(valueReachesOutside),
  port: singleCondition<number>(areDifferent),
  sourceLabels: conditionByKey<string>(areDifferent),
  sourceNamespace: singleCondition<string>(areDifferent),
  gateways: {
    reachesOutside: (root, leaf) => isNonEmpty(root) && (leaf ?? []).some((gateway) => !root.includes(gateway)),
    merge: (root, leaf) => (isNonEmpty(leaf) ? leaf : root),
  },
  ignoreUriCase: singleCondition((root = false, leaf = false) => root !== leaf),
  statPrefix: restrictsNothing,
  // Set only on generated objects, which have no delegates.
  bySegments: restrictsNothing,
  // `never` matches nothing, regardless of the other match.
  never: restrictsNothing,
};

/** Visits only fields that the delegate's match sets, because it is called for each pair of matches. */
function mergeMatch(root: HttpMatchRequest, leaf: HttpMatchRequest): HttpMatchRequest {
  const mergedFields: Record<string, unknown> = { ...root };
  for (const field of fieldsOf(leaf)) {
    const value = conditionOf(field).merge(root[field], leaf[field]);
    if (value !== undefined) mergedFields[field] = value;
  }
  return mergedFields as HttpMatchRequest;
}

function joinedName(root: string | undefined, leaf: string | undefined): string | undefined {
  return root !== undefined && leaf !== undefined ? `${root}-${leaf}` : (leaf ?? root);
}

/**
 * Whether a delegate's match accepts requests that the root's match does not accept. An unset field inherits the root's value, except case
 * sensitivity.
 */
function areConflicting(root: HttpMatchRequest, leaf: HttpMatchRequest): boolean {
  if (conditions.ignoreUriCase.reachesOutside(root.ignoreUriCase, leaf.ignoreUriCase)) return true;
  return fieldsOf(leaf).some((field) => conditionOf(field).reachesOutside(root[field], leaf[field]));
}

const fieldsOf = memoizeByObject((match: HttpMatchRequest) => Object.keys(match) as (keyof HttpMatchRequest)[]);

function conditionOf(field: keyof HttpMatchRequest): Condition<unknown> {
  return conditions[field] as Condition<unknown>;
}

/** An empty list counts as unset. */
function isNonEmpty(gateways: readonly string[] | undefined): gateways is readonly string[] {
  return gateways !== undefined && gateways.length > 0;
}

function areDifferent<A>(root: A | undefined, leaf: A | undefined): boolean {
  return root !== undefined && leaf !== undefined && root !== leaf;
}

function valueReachesOutside(root: ValueMatch | undefined, leaf: ValueMatch | undefined): boolean {
  if (root === undefined || leaf === undefined || 'present' in root) return false;
  if ('present' in leaf) return true;
  if ('prefix' in root) return !startOf(leaf)?.startsWith(root.prefix);
  if ('exact' in root) return !('exact' in leaf && leaf.exact === root.exact);
  // Different regular expressions cannot be compared.
  return !('regex' in leaf && leaf.regex === root.regex);
}

function startOf(match: StringMatch): string | undefined {
  return 'exact' in match ? match.exact : 'prefix' in match ? match.prefix : undefined;
}

function withRootActions(root: HttpRoute, route: HttpRoute, match: readonly HttpMatchRequest[]): HttpRoute {
  const { mirror, mirrors, ...inheritedFields } = root;
  const { match: _, delegate, route: destinations, redirect, missingDestinationStatus, ...actions } = inheritedFields;
  const hasMirrors = route.mirror !== undefined || (route.mirrors?.length ?? 0) > 0;
  const name = joinedName(root.name, route.name);
  return {
    ...actions,
    ...(!hasMirrors && mirror && { mirror }),
    ...(!hasMirrors && mirrors && { mirrors }),
    ...route,
    match,
    ...(name !== undefined && { name }),
  };
}
