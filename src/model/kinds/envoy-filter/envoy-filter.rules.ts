import * as E from 'fp-ts/lib/Either.js';
import { type FieldError, fieldPath } from '../../fields/decode.ts';
import * as violation from '../../fields/violation.ts';
import { crashingValues } from './envoy-filter.crashing.ts';
import type { EnvoyFilter, EnvoyPatch, EnvoyPatchOperation, PatchTarget } from './envoy-filter.ts';
import { deprecatedFields, patchValue } from './envoy-filter.value.ts';

const mergeOperations: readonly EnvoyPatchOperation[] = ['MERGE', 'MERGE_AND_REPLACE_LIST'];
const insertOperations: readonly EnvoyPatchOperation[] = ['INSERT_FIRST', 'INSERT_BEFORE', 'INSERT_AFTER'];

const operationsOf: Readonly<Record<PatchTarget, readonly EnvoyPatchOperation[]>> = {
  LISTENER: [...mergeOperations, 'ADD', 'REMOVE'],
  CLUSTER: [...mergeOperations, 'ADD', 'REMOVE'],
  FILTER_CHAIN: [...mergeOperations, 'ADD', 'REMOVE'],
  LISTENER_FILTER: [...mergeOperations, 'ADD', 'REMOVE', 'REPLACE', ...insertOperations],
  NETWORK_FILTER: [...mergeOperations, 'ADD', 'REMOVE', 'REPLACE', ...insertOperations],
  HTTP_FILTER: [...mergeOperations, 'ADD', 'REMOVE', 'REPLACE', ...insertOperations],
  ROUTE_CONFIGURATION: mergeOperations,
  VIRTUAL_HOST: [...mergeOperations, 'ADD', 'REMOVE', 'REPLACE'],
  HTTP_ROUTE: [...mergeOperations, 'ADD', 'REMOVE', ...insertOperations],
  EXTENSION_CONFIG: ['ADD'],
  BOOTSTRAP: mergeOperations,
};

type ObjectMatch = 'listener' | 'routeConfiguration' | 'cluster';

const matchOf: Readonly<Record<PatchTarget, ObjectMatch | undefined>> = {
  LISTENER: 'listener',
  FILTER_CHAIN: 'listener',
  LISTENER_FILTER: 'listener',
  NETWORK_FILTER: 'listener',
  HTTP_FILTER: 'listener',
  ROUTE_CONFIGURATION: 'routeConfiguration',
  VIRTUAL_HOST: 'routeConfiguration',
  HTTP_ROUTE: 'routeConfiguration',
  CLUSTER: 'cluster',
  EXTENSION_CONFIG: undefined,
  BOOTSTRAP: undefined,
};

const objectMatches: readonly ObjectMatch[] = ['listener', 'routeConfiguration', 'cluster'];

export function patchErrors(patch: EnvoyPatch, path: string): FieldError[] {
  const { applyTo, match, operation, value } = patch;
  const decodedValue = patchValue(patch);
  const allowedOperations = operationsOf[applyTo];
  const subFilter = match.listener?.filterChain?.filter?.subFilter;
  return [
    ...violation.errorsAt(
      `${fieldPath(path, 'patch')}.operation`,
      allowedOperations.includes(operation)
        ? undefined
        : violation.unknownValue(allowedOperations, operation, { hint: `${applyTo} has no other operation` }),
    ),
    ...violation.errorsAt(
      `${fieldPath(path, 'patch')}.value`,
      value === undefined && operation !== 'REMOVE' ? violation.missingValue(`with ${operation}`) : undefined,
    ),
    ...objectMatches
      .filter((field) => match[field] !== undefined && field !== matchOf[applyTo])
      .map((field) =>
        violation.fieldError(
          `${fieldPath(path, 'match')}.${field}`,
          violation.excludedField(`with applyTo ${applyTo}`),
        ),
      ),
    ...violation.errorsAt(
      `${fieldPath(path, 'match')}.listener.filterChain.filter.subFilter`,
      subFilter !== undefined && applyTo !== 'HTTP_FILTER'
        ? violation.excludedField(`with applyTo ${applyTo}`)
        : undefined,
    ),
    ...violation.errorsAt(
      `${fieldPath(path, 'match')}.listener.listenerFilter`,
      match.listener?.listenerFilter !== undefined && applyTo !== 'LISTENER_FILTER'
        ? violation.excludedField(`with applyTo ${applyTo}`)
        : undefined,
    ),
    ...nameErrors(applyTo, operation, value, `${fieldPath(path, 'patch')}.value`),
    ...violation.errorsAt(
      `${fieldPath(path, 'patch')}.value`,
      decodedValue && E.isLeft(decodedValue)
        ? violation.malformedValue(`is not a valid ${applyTo}: ${decodedValue.left}`)
        : undefined,
    ),
    ...(decodedValue && E.isRight(decodedValue)
      ? crashingValues(decodedValue.right, { isMerged: mergeOperations.includes(operation) }).map((crashViolation) =>
          violation.fieldError(`${fieldPath(path, 'patch')}.value`, crashViolation),
        )
      : []),
  ];
}

function nameErrors(
  applyTo: PatchTarget,
  operation: EnvoyPatchOperation,
  value: EnvoyPatch['value'],
  path: string,
): FieldError[] {
  const isFilter = applyTo === 'HTTP_FILTER' || applyTo === 'NETWORK_FILTER' || applyTo === 'LISTENER_FILTER';
  const needsName = isFilter || applyTo === 'CLUSTER' || applyTo === 'LISTENER' || applyTo === 'EXTENSION_CONFIG';
  const isAddition = operation === 'ADD' || operation === 'REPLACE' || insertOperations.includes(operation);
  if (value === undefined || !isAddition || !needsName) return [];
  const hasName = typeof value.name === 'string' && value.name !== '';
  return violation.errorsAt(fieldPath(path, 'name'), hasName ? undefined : violation.missingValue());
}

/** Filter names before Envoy 1.14, which are still accepted in matches. */
const oldNames: Readonly<Record<string, string>> = {
  'envoy.http_connection_manager': 'envoy.filters.network.http_connection_manager',
  'envoy.tcp_proxy': 'envoy.filters.network.tcp_proxy',
  'envoy.mongo_proxy': 'envoy.filters.network.mongo_proxy',
  'envoy.redis_proxy': 'envoy.filters.network.redis_proxy',
  'envoy.router': 'envoy.filters.http.router',
  'envoy.cors': 'envoy.filters.http.cors',
  'envoy.fault': 'envoy.filters.http.fault',
  'envoy.lua': 'envoy.filters.http.lua',
  'envoy.ext_authz': 'envoy.filters.http.ext_authz',
  'envoy.rate_limit': 'envoy.filters.http.ratelimit',
  'envoy.buffer': 'envoy.filters.http.buffer',
  'envoy.grpc_http1_bridge': 'envoy.filters.http.grpc_http1_bridge',
  'envoy.grpc_json_transcoder': 'envoy.filters.http.grpc_json_transcoder',
  'envoy.grpc_web': 'envoy.filters.http.grpc_web',
  'envoy.health_check': 'envoy.filters.http.health_check',
  'envoy.ip_tagging': 'envoy.filters.http.ip_tagging',
  'envoy.ratelimit': 'envoy.filters.network.ratelimit',
  'envoy.listener.http_inspector': 'envoy.filters.listener.http_inspector',
  'envoy.listener.original_dst': 'envoy.filters.listener.original_dst',
  'envoy.listener.original_src': 'envoy.filters.listener.original_src',
  'envoy.listener.proxy_protocol': 'envoy.filters.listener.proxy_protocol',
  'envoy.listener.tls_inspector': 'envoy.filters.listener.tls_inspector',
};

export function currentFilterName(name: string): string {
  return Object.hasOwn(oldNames, name) ? oldNames[name]! : name;
}

export function envoyFilterWarnings({ configPatches, priority, workloadSelector }: EnvoyFilter): FieldError[] {
  const hasEmptySelector = workloadSelector !== undefined && Object.keys(workloadSelector).length === 0;
  return [
    ...configPatches.flatMap((patch, index) => patchWarnings(patch, priority, `configPatches[${index}]`)),
    ...violation.errorsAt(
      'workloadSelector',
      hasEmptySelector
        ? violation.doubtfulValue('has no labels: the object applies to the whole namespace')
        : undefined,
    ),
    ...violation.errorsAt(
      'configPatches',
      configPatches.length === 0 ? violation.ineffectiveField('the list is empty') : undefined,
    ),
  ];
}

function patchWarnings(patch: EnvoyPatch, priority: number, path: string): FieldError[] {
  const { operation, match } = patch;
  if (match.context === 'WAYPOINT')
    return [violation.fieldError(path, violation.unsupportedFeature('is skipped: waypoints are not supported'))];
  const isRelative = operation === 'INSERT_BEFORE' || operation === 'INSERT_AFTER' || operation === 'REPLACE';
  return [
    ...violation.errorsAt(
      `${path}.patch.operation`,
      priority === 0 && isRelative
        ? violation.doubtfulValue(`the result of ${operation} depends on other EnvoyFilters: set spec.priority`)
        : undefined,
    ),
    ...oldNameWarnings(patch, path),
    ...unmatchableErrors(patch, `${path}.match`),
    ...valueWarnings(patch, `${path}.patch.value`),
    ...ignoredNameErrors(patch, path),
  ];
}

function oldNameWarnings({ match, value }: EnvoyPatch, path: string): FieldError[] {
  const filter = match.listener?.filterChain?.filter;
  const names: readonly (readonly [string, unknown])[] = [
    ['match.listener.filterChain.filter.name', filter?.name],
    ['match.listener.filterChain.filter.subFilter.name', filter?.subFilter?.name],
    ['patch.value.name', value?.name],
  ];
  return names.flatMap(([field, name]) => {
    const currentName = typeof name === 'string' ? currentFilterName(name) : name;
    return violation.errorsAt(
      `${path}.${field}`,
      currentName === name ? undefined : violation.deprecatedField(`is the old name of ${currentName}`),
    );
  });
}

function valueWarnings(patch: EnvoyPatch, path: string): FieldError[] {
  const decodedValue = patchValue(patch);
  if (decodedValue === undefined || E.isLeft(decodedValue)) return [];
  return [
    ...decodedValue.right.unknownTypes.map((fieldName) =>
      violation.fieldError(path, violation.doubtfulValue(`${fieldName}: only a newer Envoy may support it`)),
    ),
    ...deprecatedFields(decodedValue.right).map((field) =>
      violation.fieldError(path, violation.deprecatedField(`${field} is deprecated`)),
    ),
  ];
}

/** A patch cannot rename, so a new name has no effect. */
function ignoredNameErrors({ applyTo, operation, value }: EnvoyPatch, path: string): FieldError[] {
  const hasNamedTarget = applyTo === 'CLUSTER' || applyTo === 'LISTENER' || applyTo === 'ROUTE_CONFIGURATION';
  const changesName = hasNamedTarget && mergeOperations.includes(operation) && value?.name !== undefined;
  return violation.errorsAt(
    `${path}.patch.value.name`,
    changesName ? violation.ineffectiveField('the name of an existing object cannot change') : undefined,
  );
}

function unmatchableErrors({ applyTo, operation, match }: EnvoyPatch, path: string): FieldError[] {
  const changes = operation === 'REMOVE' || operation === 'REPLACE' || mergeOperations.includes(operation);
  const filter = match.listener?.filterChain?.filter;
  const name =
    applyTo === 'NETWORK_FILTER'
      ? filter?.name
      : applyTo === 'HTTP_FILTER'
        ? filter?.subFilter?.name
        : applyTo === 'LISTENER_FILTER'
          ? match.listener?.listenerFilter
          : '-';
  return violation.errorsAt(
    path,
    changes && (name ?? '') === '' ? violation.ineffectiveField(`${operation} needs the name of a filter`) : undefined,
  );
}
