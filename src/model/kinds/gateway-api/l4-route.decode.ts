/** Decoding of TLSRoute and TCPRoute, with what the API's CRDs would refuse. */
import {
  anything,
  type Decoder,
  type FieldError,
  mapped,
  optional,
  refine,
  required,
  struct,
} from '../../fields/decode.ts';
import { mistakeAt } from '../field-rules.ts';
import { listOf, objectName } from './fields.ts';
import type { HttpBackendRef, HttpRouteRule, RouteObject } from './http-route.ts';
import { backendErrors, weighedBackendFields } from './http-route-filter.decode.ts';
import { routeErrors, routeFields } from './route.decode.ts';

const backendRef: Decoder<HttpBackendRef> = mapped(
  refine(struct<Omit<HttpBackendRef, 'filters'>>(weighedBackendFields), backendErrors),
  (ref) => ({ ...ref, filters: [] }),
);

const rule: Decoder<HttpRouteRule> = mapped(
  struct<Pick<HttpRouteRule, 'name' | 'backendRefs'>>({
    name: optional(objectName),
    backendRefs: required(listOf(backendRef, 1, 16)),
  }),
  (one) => ({ ...one, matches: [], filters: [] }),
);

const { parentRefs, hostnames } = routeFields;
const rules = required(listOf(rule, 1, 16));

export const tlsRouteObject: Decoder<RouteObject> = refine(
  struct<RouteObject>({ parentRefs, hostnames, rules, useDefaultGateways: optional(anything) }),
  routeErrors,
);

export const tcpRouteObject: Decoder<RouteObject> = mapped(
  refine(
    struct<Omit<RouteObject, 'hostnames'>>({ parentRefs, rules, useDefaultGateways: optional(anything) }),
    (route, path) => routeErrors(withoutHostnames(route), path),
  ),
  withoutHostnames,
);

function withoutHostnames(route: Omit<RouteObject, 'hostnames'>): RouteObject {
  return { ...route, hostnames: [] };
}

/** What the object says and nobody carries out. */
export function l4RouteWarnings({ rules: written, useDefaultGateways }: RouteObject): FieldError[] {
  return [
    ...mistakeAt('useDefaultGateways', useDefaultGateways === undefined ? undefined : 'has no effect'),
    ...mistakeAt(
      'rules[1]',
      written.length > 1 ? 'is never reached: the first rule takes every connection' : undefined,
    ),
  ];
}
