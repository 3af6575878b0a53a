import { type Decoder, type FieldError, mapDecoder, optional, refine, required, struct } from '../../fields/decode.ts';
import * as violation from '../../fields/violation.ts';
import { listOf, objectName } from './fields.ts';
import type { HttpBackendRef, HttpRouteRule, RouteObject } from './http-route.ts';
import { backendErrors, weightedBackendFields } from './http-route-filter.decode.ts';
import { routeErrors, routeFields } from './route.decode.ts';

const backendRef: Decoder<HttpBackendRef> = mapDecoder(
  refine(struct<Omit<HttpBackendRef, 'filters'>>(weightedBackendFields), backendErrors),
  (ref) => ({ ...ref, filters: [] }),
);

const rule: Decoder<HttpRouteRule> = mapDecoder(
  struct<Pick<HttpRouteRule, 'name' | 'backendRefs'>>({
    name: optional(objectName),
    backendRefs: required(listOf(backendRef, 1, 16)),
  }),
  (routeRule) => ({ ...routeRule, matches: [], filters: [] }),
);

const { hostnames, ...fields } = routeFields;
const rules = required(listOf(rule, 1, 16));

export const tlsRouteObject: Decoder<RouteObject> = refine(
  struct<RouteObject>({ ...fields, hostnames, rules }),
  routeErrors,
);

export const tcpRouteObject: Decoder<RouteObject> = mapDecoder(
  refine(struct<Omit<RouteObject, 'hostnames'>>({ ...fields, rules }), (route, path) =>
    routeErrors(omitHostnames(route), path),
  ),
  omitHostnames,
);

function omitHostnames(route: Omit<RouteObject, 'hostnames'>): RouteObject {
  return { ...route, hostnames: [] };
}

export function l4RouteWarnings(route: RouteObject): FieldError[] {
  return violation.errorsAt(
    'rules[1]',
    route.rules.length > 1 ? violation.ineffectiveField('the first rule matches every connection') : undefined,
  );
}
