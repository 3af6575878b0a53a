/** Decodes a GRPCRoute to an HTTPRoute: a gRPC call is a POST to `/service/method` (gRPC over HTTP/2, "Path"). */

import {
  anyValue,
  type Decoder,
  type FieldError,
  mapDecoder,
  name,
  oneOf,
  optional,
  refine,
  restrictions,
  struct,
  withDefault,
} from '../../fields/decode.ts';
import { withoutEffect } from '../../fields/effect.ts';
import { composedRe2Violation, re2Violation } from '../../fields/re2.ts';
import * as violation from '../../fields/violation.ts';
import { listOf, objectName } from './fields.ts';
import type {
  HttpBackendRef,
  HttpRouteFilter,
  HttpRouteFilterType,
  HttpRouteMatch,
  HttpRouteRule,
  PathMatch,
  RouteObject,
} from './http-route.ts';
import {
  backendErrors,
  grpcBackendFilters,
  grpcRouteFilters,
  weightedBackendFields,
} from './http-route-filter.decode.ts';
import { everyRequest, headerMatches } from './http-route-match.decode.ts';
import { routeErrors, routeFields } from './route.decode.ts';

interface MethodMatch {
  readonly type: 'Exact' | 'RegularExpression';
  readonly service?: string;
  readonly method?: string;
}

const serviceName = /^\.?[a-z_][a-z_0-9]*(?:\.[a-z_][a-z_0-9]*)*$/i;
const methodName = /^[a-z_][a-z_0-9]*$/i;

const methodMatch: Decoder<MethodMatch> = refine(
  struct<MethodMatch>({
    type: withDefault(oneOf(['Exact', 'RegularExpression']), 'Exact'),
    ...restrictions({ service: optional(name), method: optional(name) }),
  }),
  ({ service, method }, path) =>
    violation.errorsAt(
      path,
      service === undefined && method === undefined ? violation.missingAny(['service', 'method']) : undefined,
    ),
  ({ type, service }, path) =>
    nameErrors(type, service, serviceName, `${path}.service`, 'a service such as shop.v1.Cart'),
  ({ type, method }, path) => nameErrors(type, method, methodName, `${path}.method`, 'a method such as AddItem'),
  composedErrors,
);

function nameErrors(
  type: MethodMatch['type'],
  value: string | undefined,
  pattern: RegExp,
  path: string,
  subject: string,
): FieldError[] {
  if (value === undefined) return [];
  if (value.length > 1024) return [violation.fieldError(path, violation.tooLarge(1024, value.length))];
  if (type === 'RegularExpression') return violation.errorsAt(path, re2Violation(value));
  return violation.errorsAt(path, pattern.test(value) ? undefined : violation.mustBe(`the name of ${subject}`, value));
}

const anyName = '[^/]+';

function pathOf({ type, service, method }: MethodMatch): PathMatch {
  if (type === 'RegularExpression' || service === undefined) {
    const value = `/(?:${service ?? anyName})/(?:${method ?? anyName})`;
    return { type: 'RegularExpression', value };
  }
  return method === undefined
    ? { type: 'PathPrefix', value: `/${service}/` }
    : { type: 'Exact', value: `/${service}/${method}` };
}

/** Validates the combined expression, because Envoy would reject all routes of a port. */
function composedErrors(match: MethodMatch, path: string): FieldError[] {
  const { type, service, method } = match;
  const expressions = [service, method].filter((expression) => expression !== undefined);
  // Errors of a single expression are already reported.
  if (
    type !== 'RegularExpression' ||
    expressions.length === 0 ||
    expressions.some((expression) => re2Violation(expression))
  )
    return [];
  const { value } = pathOf(match);
  const regexError = composedRe2Violation(value);
  return violation.errorsAt(
    path,
    regexError && { ...regexError, message: `as the path ${value}: ${regexError.message}` },
  );
}

interface WrittenMatch extends Pick<HttpRouteMatch, 'headers'> {
  readonly method?: MethodMatch;
}

const match: Decoder<HttpRouteMatch> = mapDecoder(
  struct<WrittenMatch>(restrictions({ method: optional(methodMatch), headers: headerMatches })),
  ({ method, headers }) => ({ ...everyRequest, headers, ...(method !== undefined && { path: pathOf(method) }) }),
);

const types: ReadonlySet<HttpRouteFilterType> = new Set([
  'RequestHeaderModifier',
  'ResponseHeaderModifier',
  'RequestMirror',
  'ExtensionRef',
]);

function onlyGrpcFilters(filters: Decoder<readonly HttpRouteFilter[]>): Decoder<readonly HttpRouteFilter[]> {
  return refine(filters, (list, path) =>
    list.flatMap(({ type }, index) =>
      violation.errorsAt(
        `${path}[${index}].type`,
        types.has(type) ? undefined : violation.unknownValue([...types], type),
      ),
    ),
  );
}

const backendRef: Decoder<HttpBackendRef> = refine(
  struct<HttpBackendRef>({ ...weightedBackendFields, filters: withDefault(onlyGrpcFilters(grpcBackendFilters), []) }),
  backendErrors,
);

const rule: Decoder<HttpRouteRule> = struct<Omit<HttpRouteRule, 'timeouts' | 'retry'>>({
  name: optional(objectName),
  ...restrictions({ matches: withDefault(listOf(match, 0, 64), [everyRequest]) }),
  filters: withDefault(onlyGrpcFilters(grpcRouteFilters), []),
  backendRefs: withDefault(listOf(backendRef, 0, 16), []),
  sessionPersistence: withoutEffect(optional(anyValue), 'use a DestinationRule with consistentHash'),
});

export const grpcRouteObject: Decoder<RouteObject> = refine(
  struct<RouteObject>({
    ...routeFields,
    rules: withDefault(listOf(rule, 0, 16), []),
  }),
  routeErrors,
);
