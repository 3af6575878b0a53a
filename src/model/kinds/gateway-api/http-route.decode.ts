/** Decoding of HTTPRoute, with what the API's CRD would refuse. */
import {
  anything,
  type Decoder,
  type FieldError,
  integer,
  optional,
  port,
  refine,
  required,
  struct,
  withDefault,
} from '../../fields/decode.ts';
import { mistakeAt, repetitions } from '../field-rules.ts';
import { duration, gatewayApiGroup, group, hostname, kindName, listOf, namespace, objectName } from './fields.ts';
import type { HttpBackendRef, HttpRouteObject, HttpRouteRule, ParentReference } from './http-route.ts';
import { backendErrors, backendFields, httpRouteFilters, pathModifierOf } from './http-route-filter.decode.ts';
import { everyPath, httpRouteMatch } from './http-route-match.decode.ts';

const everything = [{ path: everyPath, headers: [], queryParams: [] }];

const parentReference = struct<ParentReference>({
  group: withDefault(group, gatewayApiGroup),
  kind: withDefault(kindName, 'Gateway'),
  namespace: optional(namespace),
  name: required(objectName),
  sectionName: optional(objectName),
  port: optional(port),
});

const backendRef: Decoder<HttpBackendRef> = refine(
  struct<HttpBackendRef>({
    ...backendFields,
    weight: withDefault(integer(0, 1_000_000), 1),
    filters: withDefault(httpRouteFilters, []),
  }),
  backendErrors,
);

const rule: Decoder<HttpRouteRule> = refine(
  struct<HttpRouteRule>({
    name: optional(objectName),
    matches: withDefault(listOf(httpRouteMatch, 0, 64), everything),
    filters: withDefault(httpRouteFilters, []),
    backendRefs: withDefault(listOf(backendRef, 0, 16), []),
    timeouts: optional(
      struct<{ requestMs?: number; backendRequestMs?: number }>({
        requestMs: optional(duration, 'request'),
        backendRequestMs: optional(duration, 'backendRequest'),
      }),
    ),
    retry: optional(anything),
    sessionPersistence: optional(anything),
  }),
  (one, path) => [...redirectErrors(one, path), ...prefixErrors(one, path), ...timeoutErrors(one, path)],
);

function redirectErrors({ filters, backendRefs }: HttpRouteRule, path: string): FieldError[] {
  const redirects = filters.some(({ type }) => type === 'RequestRedirect');
  return mistakeAt(
    `${path}.backendRefs`,
    redirects && backendRefs.length > 0
      ? 'must not be given beside a RequestRedirect: nothing is sent there'
      : undefined,
  );
}

/** A prefix can be replaced when it is known which one. */
function prefixErrors({ matches, filters, backendRefs }: HttpRouteRule, path: string): FieldError[] {
  const onePrefix = matches.length <= 1 && (matches[0] ?? everything[0]!).path.type === 'PathPrefix';
  if (onePrefix) return [];
  const lists = [
    { at: `${path}.filters`, filters },
    ...backendRefs.map((ref, index) => ({ at: `${path}.backendRefs[${index}].filters`, filters: ref.filters })),
  ];
  return lists.flatMap(({ at, filters: list }) =>
    list.flatMap((filter, index) =>
      mistakeAt(
        `${at}[${index}]`,
        pathModifierOf(filter)?.type === 'ReplacePrefixMatch'
          ? 'replacePrefixMatch needs a rule with one match, of type PathPrefix'
          : undefined,
      ),
    ),
  );
}

function timeoutErrors({ timeouts = {} }: HttpRouteRule, path: string): FieldError[] {
  const { requestMs = 0, backendRequestMs = 0 } = timeouts;
  return mistakeAt(
    `${path}.timeouts.backendRequest`,
    requestMs > 0 && backendRequestMs > requestMs ? 'must not be longer than request' : undefined,
  );
}

const mostMatches = 128;

export const httpRouteObject: Decoder<HttpRouteObject> = refine(
  struct<HttpRouteObject>({
    parentRefs: withDefault(listOf(parentReference, 0, 32), []),
    hostnames: withDefault(listOf(hostname, 0, 16), []),
    rules: withDefault(listOf(rule, 1, 16), [{ matches: everything, filters: [], backendRefs: [] }]),
    useDefaultGateways: optional(anything),
  }),
  ({ parentRefs, rules }, path) => {
    const matches = rules.reduce((sum, one) => sum + one.matches.length, 0);
    const at = path === '' ? '' : `${path}.`;
    return [
      ...parentErrors(parentRefs, `${at}parentRefs`),
      ...repetitions(
        rules,
        (one) => one.name,
        (index) => `${at}rules[${index}].name`,
        'name',
      ),
      ...mistakeAt(
        `${at}rules`,
        matches > mostMatches ? `must have at most ${mostMatches} matches in all, not ${matches}` : undefined,
      ),
    ];
  },
);

/** References to one parent must be to different parts of it. */
function parentErrors(parents: readonly ParentReference[], path: string): FieldError[] {
  const parentOf = ({ group: ofGroup, kind, namespace: of = '', name }: ParentReference): string =>
    [ofGroup, kind, of, name].join('/');
  const partOf = ({ sectionName, port: number }: ParentReference): string => `${sectionName ?? ''}:${number ?? ''}`;
  return parents.flatMap((parent, index) => {
    const same = parents.slice(0, index).filter((other) => parentOf(other) === parentOf(parent));
    if (same.some((other) => partOf(other) === partOf(parent))) {
      return [{ path: `${path}[${index}]`, message: 'repeats an earlier reference' }];
    }
    const whole = [parent, ...same].some((one) => partOf(one) === ':');
    return mistakeAt(
      `${path}[${index}]`,
      same.length > 0 && whole
        ? 'is to a parent of another reference: each must have a sectionName or port'
        : undefined,
    );
  });
}

/** What the object says and nobody carries out. */
export function httpRouteWarnings({ rules, useDefaultGateways }: HttpRouteObject): FieldError[] {
  return [
    ...mistakeAt('useDefaultGateways', useDefaultGateways === undefined ? undefined : 'has no effect'),
    ...rules.flatMap((one, index) =>
      (['retry', 'sessionPersistence'] as const).flatMap((field) =>
        mistakeAt(`rules[${index}].${field}`, one[field] === undefined ? undefined : 'is not carried out'),
      ),
    ),
  ];
}
