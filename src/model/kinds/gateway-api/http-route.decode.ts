import {
  anyValue,
  type Decoder,
  type FieldError,
  optional,
  refine,
  restrictions,
  struct,
  withDefault,
} from '../../fields/decode.ts';
import { withoutEffect } from '../../fields/effect.ts';
import * as violation from '../../fields/violation.ts';
import { duration, listOf, objectName } from './fields.ts';
import type { HttpBackendRef, HttpRouteRule, RouteObject } from './http-route.ts';
import {
  backendErrors,
  backendFilters,
  httpRouteFilters,
  pathModifierOf,
  weightedBackendFields,
} from './http-route-filter.decode.ts';
import { everyRequest, httpRouteMatch } from './http-route-match.decode.ts';
import { routeErrors, routeFields } from './route.decode.ts';

const backendRef: Decoder<HttpBackendRef> = refine(
  struct<HttpBackendRef>({ ...weightedBackendFields, filters: withDefault(backendFilters, []) }),
  backendErrors,
);

const rule: Decoder<HttpRouteRule> = refine(
  struct<HttpRouteRule>({
    name: optional(objectName),
    ...restrictions({ matches: withDefault(listOf(httpRouteMatch, 0, 64), [everyRequest]) }),
    filters: withDefault(httpRouteFilters, []),
    backendRefs: withDefault(listOf(backendRef, 0, 16), []),
    timeouts: optional(
      struct<{ requestMs?: number; backendRequestMs?: number }>({
        requestMs: optional(duration, 'request'),
        backendRequestMs: optional(duration, 'backendRequest'),
      }),
    ),
    retry: withoutEffect(optional(anyValue), 'use a VirtualService or the mesh configuration for retries'),
    sessionPersistence: withoutEffect(optional(anyValue), 'use a DestinationRule with consistentHash'),
  }),
  (rule, path) => [...redirectErrors(rule, path), ...prefixErrors(rule, path), ...timeoutErrors(rule, path)],
);

function redirectErrors({ filters, backendRefs }: HttpRouteRule, path: string): FieldError[] {
  const redirects = filters.some(({ type }) => type === 'RequestRedirect');
  return violation.errorsAt(
    `${path}.backendRefs`,
    redirects && backendRefs.length > 0 ? violation.excludedField('together with a RequestRedirect') : undefined,
  );
}

function prefixErrors({ matches, filters, backendRefs }: HttpRouteRule, path: string): FieldError[] {
  const matchesOnePrefix = matches.length <= 1 && (matches[0] ?? everyRequest).path.type === 'PathPrefix';
  if (matchesOnePrefix) return [];
  const lists = [
    { at: `${path}.filters`, filters },
    ...backendRefs.map((ref, index) => ({ at: `${path}.backendRefs[${index}].filters`, filters: ref.filters })),
  ];
  return lists.flatMap(({ at, filters: list }) =>
    list.flatMap((filter, index) =>
      violation.errorsAt(
        `${at}[${index}]`,
        pathModifierOf(filter)?.type === 'ReplacePrefixMatch'
          ? violation.conflict('replacePrefixMatch needs a rule with exactly one match, of type PathPrefix')
          : undefined,
      ),
    ),
  );
}

function timeoutErrors({ timeouts = {} }: HttpRouteRule, path: string): FieldError[] {
  const { requestMs = 0, backendRequestMs = 0 } = timeouts;
  return violation.errorsAt(
    `${path}.timeouts.backendRequest`,
    requestMs > 0 && backendRequestMs > requestMs
      ? violation.outOfRange(`at most timeouts.request, ${requestMs}ms`, `${backendRequestMs}ms`)
      : undefined,
  );
}

export const httpRouteObject: Decoder<RouteObject> = refine(
  struct<RouteObject>({
    ...routeFields,
    rules: withDefault(listOf(rule, 1, 16), [{ matches: [everyRequest], filters: [], backendRefs: [] }]),
  }),
  routeErrors,
);
