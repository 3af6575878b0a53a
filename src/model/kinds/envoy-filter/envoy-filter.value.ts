/** Decodes patch values to messages of Envoy's API. */
import { isFieldSet, type JsonValue } from '@bufbuild/protobuf';
import type * as E from 'fp-ts/lib/Either.js';
import { decodeLenient, type LenientMessage } from '../../envoy-api/envoy-api.ts';
import { messagesWithin } from '../../envoy-api/messages-within.ts';
import type { EnvoyPatch, PatchTarget } from './envoy-filter.ts';

const listener = 'envoy.config.listener.v3';
const route = 'envoy.config.route.v3';

const messageOf: Readonly<Record<PatchTarget, string>> = {
  LISTENER: `${listener}.Listener`,
  FILTER_CHAIN: `${listener}.FilterChain`,
  LISTENER_FILTER: `${listener}.ListenerFilter`,
  NETWORK_FILTER: `${listener}.Filter`,
  HTTP_FILTER: 'envoy.extensions.filters.network.http_connection_manager.v3.HttpFilter',
  ROUTE_CONFIGURATION: `${route}.RouteConfiguration`,
  VIRTUAL_HOST: `${route}.VirtualHost`,
  HTTP_ROUTE: `${route}.Route`,
  CLUSTER: 'envoy.config.cluster.v3.Cluster',
  EXTENSION_CONFIG: 'envoy.config.core.v3.TypedExtensionConfig',
  BOOTSTRAP: 'envoy.config.bootstrap.v3.Bootstrap',
};

export type PatchValue = E.Either<string, LenientMessage> | undefined;

const decoded = new WeakMap<EnvoyPatch, PatchValue>();

/** Returns `undefined` if there is no value or none is needed; left: the error. Cached. */
export function patchValue(patch: EnvoyPatch): PatchValue {
  if (!decoded.has(patch)) decoded.set(patch, decodeValue(patch));
  return decoded.get(patch);
}

function decodeValue({ applyTo, operation, value }: EnvoyPatch): PatchValue {
  if (value === undefined || operation === 'REMOVE') return undefined;
  const keepsTypes = operation === 'MERGE' || operation === 'MERGE_AND_REPLACE_LIST';
  return decodeLenient(messageOf[applyTo], value as JsonValue, { keepsTypes });
}

/** Returns deprecated fields at any depth, such as `envoy.config.cluster.v3.Cluster.http2_protocol_options`. */
export function deprecatedFields({ schema, message }: Pick<LenientMessage, 'schema' | 'message'>): readonly string[] {
  const names = [...messagesWithin(schema, message)].flatMap(
    ({ schema: { fields, typeName }, message: nestedMessage }) =>
      fields
        .filter((field) => field.deprecated && isFieldSet(nestedMessage, field))
        .map(({ name }) => `${typeName}.${name}`),
  );
  return [...new Set(names)];
}
