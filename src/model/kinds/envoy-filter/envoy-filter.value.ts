import { isFieldSet, type JsonValue } from '@bufbuild/protobuf';
import type * as E from 'fp-ts/lib/Either.js';
import { decodeLenient, type LenientMessage } from '../../envoy-api/envoy-api.ts';
import { messagesWithin } from '../../envoy-api/messages-within.ts';
import type { EnvoyPatch, PatchTarget } from './envoy-filter.ts';

const listenerPackage = 'envoy.config.listener.v3';
const routePackage = 'envoy.config.route.v3';

const messageOf: Readonly<Record<PatchTarget, string>> = {
  LISTENER: `${listenerPackage}.Listener`,
  FILTER_CHAIN: `${listenerPackage}.FilterChain`,
  LISTENER_FILTER: `${listenerPackage}.ListenerFilter`,
  NETWORK_FILTER: `${listenerPackage}.Filter`,
  HTTP_FILTER: 'envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter',
  ROUTE_CONFIGURATION: `${routePackage}.RouteConfiguration`,
  VIRTUAL_HOST: `${routePackage}.VirtualHost`,
  HTTP_ROUTE: `${routePackage}.Route`,
  CLUSTER: 'envoy.config.cluster.v3.Cluster',
  EXTENSION_CONFIG: 'envoy.config.core.v3.TypedExtensionConfig',
  BOOTSTRAP: 'envoy.config.bootstrap.v3.Bootstrap',
};

export type PatchValue = E.Either<string, LenientMessage> | undefined;

const decodedValues = new WeakMap<EnvoyPatch, PatchValue>();

/** Returns the cached decoded value; `undefined` if the patch has no value or removes its target. */
export function patchValue(patch: EnvoyPatch): PatchValue {
  if (!decodedValues.has(patch)) decodedValues.set(patch, decodeValue(patch));
  return decodedValues.get(patch);
}

function decodeValue({ applyTo, operation, value }: EnvoyPatch): PatchValue {
  if (value === undefined || operation === 'REMOVE') return undefined;
  const keepsTypes = operation === 'MERGE' || operation === 'MERGE_AND_REPLACE_LIST';
  return decodeLenient(messageOf[applyTo], value as JsonValue, { keepsTypes });
}

export function deprecatedFields({ schema, message }: Pick<LenientMessage, 'schema' | 'message'>): readonly string[] {
  const names = [...messagesWithin(schema, message)].flatMap(
    ({ schema: { fields, typeName }, message: nestedMessage }) =>
      fields
        .filter((field) => field.deprecated && isFieldSet(nestedMessage, field))
        .map(({ name }) => `${typeName}.${name}`),
  );
  return [...new Set(names)];
}
