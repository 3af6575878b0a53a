import { isObject } from '../../../runtime/json-object.ts';
import {
  type Decoded,
  type Decoder,
  dictionary,
  fail,
  integer,
  list,
  mapDecoder,
  oneOf,
  optional,
  port,
  refine,
  required,
  restrictingField,
  struct,
  text,
  withDefault,
} from '../../fields/decode.ts';
import { withDescription, withSchemaValidation } from '../../fields/description.ts';
import { withoutEffect } from '../../fields/effect.ts';
import { re2Violation } from '../../fields/re2.ts';
import * as violation from '../../fields/violation.ts';
import { selectorLabels } from '../field-rules.ts';
import { maxConfigPatches } from '../object-limits.ts';
import { scopeAliases, scopeFields } from '../policies/policy-target.decode.ts';
import { patchErrors } from './envoy-filter.rules.ts';
import type * as F from './envoy-filter.ts';

/** Limit of `proxyVersion`. Istio has none, and Envoy never receives the expression. */
const maxVersionCharacters = 16_384;

const targets = [
  ...(['LISTENER', 'FILTER_CHAIN', 'LISTENER_FILTER', 'NETWORK_FILTER', 'HTTP_FILTER', 'ROUTE_CONFIGURATION'] as const),
  ...(['VIRTUAL_HOST', 'HTTP_ROUTE', 'CLUSTER', 'EXTENSION_CONFIG', 'BOOTSTRAP'] as const),
] as const;

const operations = [
  ...(['MERGE', 'MERGE_AND_REPLACE_LIST', 'ADD', 'REMOVE'] as const),
  ...(['INSERT_BEFORE', 'INSERT_AFTER', 'INSERT_FIRST', 'REPLACE'] as const),
] as const;

const portNumber = optional(port);

type FilterChain = NonNullable<F.ListenerMatch['filterChain']>;
type Filter = NonNullable<FilterChain['filter']>;
type VirtualHost = NonNullable<F.RouteConfigurationMatch['vhost']>;

const filter = struct<Filter>({
  name: optional(text),
  subFilter: optional(struct<{ name?: string }>({ name: optional(text) })),
});

const filterChain = struct<FilterChain>({
  name: optional(text),
  sni: optional(text),
  transportProtocol: optional(text),
  applicationProtocols: optional(text),
  destinationPort: portNumber,
  filter: optional(filter),
});

const listenerMatch = struct<F.ListenerMatch>({
  name: optional(text),
  portNumber,
  portName: withoutEffect(optional(text), 'use portNumber'),
  listenerFilter: optional(text),
  filterChain: optional(filterChain),
});

const routeMatch = struct<NonNullable<VirtualHost['route']>>({
  name: optional(text),
  action: optional(oneOf(['ANY', 'ROUTE', 'REDIRECT', 'DIRECT_RESPONSE'])),
});

const routeConfigurationMatch = struct<F.RouteConfigurationMatch>({
  name: optional(text),
  portNumber,
  portName: optional(text),
  gateway: optional(text),
  vhost: optional(
    struct<VirtualHost>({ name: optional(text), domainName: optional(text), route: optional(routeMatch) }),
  ),
});

const clusterMatch = struct<F.ClusterMatch>({
  name: optional(text),
  service: optional(text),
  subset: optional(text),
  portNumber,
});

const contexts = ['ANY', 'SIDECAR_INBOUND', 'SIDECAR_OUTBOUND', 'GATEWAY'] as const;

/** {@link anyPatch} accepts Waypoint patches, so schemas must accept them as well. */
const context = withDescription((value: unknown, path: string) => oneOf(contexts)(value, path), {
  ...{ type: 'narrowed', decoder: text, validation: { enum: [...contexts, 'WAYPOINT'] } },
});

const match = struct<F.PatchMatch>({
  context: withDefault(context, 'ANY'),
  proxy: optional(
    struct<NonNullable<F.PatchMatch['proxy']>>({
      proxyVersion: optional(
        refine(text, (regex, path) =>
          violation.errorsAt(path, regex === '' ? undefined : re2Violation(regex, maxVersionCharacters)),
        ),
      ),
      metadata: optional(dictionary(text)),
    }),
  ),
  listener: optional(listenerMatch),
  routeConfiguration: optional(routeConfigurationMatch),
  cluster: optional(clusterMatch),
});

const json: Decoder<Readonly<Record<string, unknown>>> = withDescription(
  (value: unknown, path: string): Decoded<Readonly<Record<string, unknown>>> =>
    isObject(value) ? { _tag: 'Right', right: value } : fail(path, violation.wrongType('an object', value)),
  { type: 'any object' },
);

type Patch = Pick<F.EnvoyPatch, 'operation' | 'value' | 'filterClass'>;

const patch = withSchemaValidation(
  struct<Patch>({
    operation: required(oneOf(operations)),
    value: optional(json),
    filterClass: withoutEffect(
      optional(oneOf(['UNSPECIFIED', 'AUTHN', 'AUTHZ', 'STATS'])),
      'use INSERT_BEFORE or INSERT_AFTER and the name of a filter',
      ['UNSPECIFIED'],
    ),
  }),
  { anyOf: [{ properties: { operation: { enum: ['REMOVE'] } } }, { required: ['value'] }] },
);

interface WrittenPatch {
  readonly applyTo: F.PatchTarget;
  readonly match: F.PatchMatch;
  readonly patch: Patch;
}

const configPatch: Decoder<F.EnvoyPatch> = refine(
  mapDecoder(
    struct<WrittenPatch>({
      applyTo: required(oneOf(targets)),
      match: restrictingField(withDefault(match, { context: 'ANY' })),
      patch: required(patch),
    }),
    ({ patch: { operation, value, filterClass }, ...target }): F.EnvoyPatch => ({
      ...target,
      operation,
      ...(value && { value }),
      ...(filterClass && { filterClass }),
    }),
  ),
  patchErrors,
);

const waypointPatch: F.EnvoyPatch = Object.freeze({
  applyTo: 'CLUSTER',
  match: Object.freeze({ context: 'WAYPOINT' }),
  operation: 'MERGE',
});

const anyPatch: Decoder<F.EnvoyPatch> = withDescription(
  (value: unknown, path: string): Decoded<F.EnvoyPatch> => {
    const isWaypointPatch = isObject(value) && isObject(value.match) && value.match.context === 'WAYPOINT';
    return isWaypointPatch ? { _tag: 'Right', right: waypointPatch } : configPatch(value, path);
  },
  { type: 'narrowed', decoder: configPatch, validation: {} },
);

export const envoyFilter: Decoder<F.EnvoyFilter> = withSchemaValidation(
  refine(
    struct<F.EnvoyFilter>(
      {
        workloadSelector: restrictingField(
          optional(
            mapDecoder(
              struct<{ labels: Readonly<Record<string, string>> }>({ labels: withDefault(selectorLabels, {}) }),
              ({ labels }) => labels,
            ),
          ),
        ),
        targetRefs: scopeFields.targetRefs,
        configPatches: withDefault(list(anyPatch, maxConfigPatches), []),
        priority: withDefault(integer(-(2 ** 31), 2 ** 31 - 1), 0),
      },
      scopeAliases() as never,
    ),
    ({ workloadSelector, targetRefs = [] }, path) =>
      violation.errorsAt(
        path,
        workloadSelector !== undefined && targetRefs.length > 0
          ? violation.exclusiveFields(['workloadSelector', 'targetRefs'])
          : undefined,
      ),
  ),
  {
    rules: [
      {
        rule: '!has(self.workloadSelector) || !has(self.targetRefs) || size(self.targetRefs) == 0',
        message: violation.exclusiveFields(['workloadSelector', 'targetRefs']).message,
      },
    ],
  },
);
