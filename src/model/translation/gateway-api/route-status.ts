import type { Config } from '../../config/config.ts';
import type { BackendRef, RouteObject } from '../../kinds/gateway-api/http-route.ts';
import type { ParentOutcome } from './attachments.ts';
import { destinationOf, type MissingBackend } from './backends.ts';
import { unsupportedFilterOf } from './http-route-rules.ts';
import { condition, type GatewayApiCondition, type RouteStatus } from './object-conditions.ts';
import type { TranslationContext } from './translation-context.ts';

export function routeStatusOf(
  route: Config<RouteObject>,
  parentOutcomes: readonly ParentOutcome[],
  context: TranslationContext,
): RouteStatus {
  const { generation, spec } = route;
  const rules = rulesOf(route);
  const parents = spec.parentRefs.flatMap((parentRef, index): RouteStatus['parents'][number][] => {
    const parentOutcome = parentOutcomes[index] ?? 'foreign';
    if (parentOutcome === 'foreign') return [];
    const acceptedCondition =
      parentOutcome === 'attached'
        ? rules
        : [condition('Accepted', false, parentOutcome.reason, parentOutcome.message)];
    const isMeshParent = parentRef.kind === 'Service';
    return [{ parentRef, conditions: [...acceptedCondition, resolvedRefs(route, context, isMeshParent)] }];
  });
  return { ...(generation !== undefined && { generation }), parents };
}

/** The condition PartiallyInvalid is omitted instead of being false. */
function rulesOf({ spec: { rules } }: Config<RouteObject>): GatewayApiCondition[] {
  const unsupportedFilters = rules.flatMap((rule, index) => {
    const filter = unsupportedFilterOf(rule);
    return filter === undefined ? [] : [`rules[${index}]: filter ${filter} is not supported`];
  });
  if (unsupportedFilters.length === rules.length && unsupportedFilters.length > 0)
    return [condition('Accepted', false, 'UnsupportedValue', unsupportedFilters.join('; '))];
  const acceptedCondition = condition('Accepted', true, 'Accepted', 'the route is attached to this parent');
  if (unsupportedFilters.length === 0) return [acceptedCondition];
  return [
    acceptedCondition,
    condition('PartiallyInvalid', true, 'UnsupportedValue', `Dropped Rule: ${unsupportedFilters.join('; ')}`),
  ];
}

const reasonsBySeverity: readonly MissingBackend['reason'][] = ['RefNotPermitted', 'InvalidKind', 'BackendNotFound'];
const maxNamed = 5;

function resolvedRefs(
  route: Config<RouteObject>,
  context: TranslationContext,
  isMeshParent: boolean,
): GatewayApiCondition {
  const missingBackends = new Map<string, MissingBackend>();
  for (const ref of referencesOf(route.spec)) {
    const foundDestination = destinationOf(ref, route, context, isMeshParent);
    if ('missingText' in foundDestination) missingBackends.set(foundDestination.missingText, foundDestination);
  }
  if (missingBackends.size === 0) return condition('ResolvedRefs', true, 'ResolvedRefs', 'all references are resolved');
  const missingList = [...missingBackends.values()].sort(
    (a, b) => reasonsBySeverity.indexOf(a.reason) - reasonsBySeverity.indexOf(b.reason),
  );
  const texts = missingList.slice(0, maxNamed).map((missingBackend) => missingBackend.missingText);
  if (missingList.length > maxNamed) texts.push(`and ${missingList.length - maxNamed} more`);
  return condition('ResolvedRefs', false, missingList[0]!.reason, texts.join('; '));
}

function* referencesOf({ rules }: RouteObject): Generator<BackendRef> {
  for (const { backendRefs, filters } of rules) {
    yield* backendRefs;
    for (const { requestMirror } of filters) if (requestMirror !== undefined) yield requestMirror.backendRef;
  }
}
