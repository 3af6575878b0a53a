/** The values of patches, as messages of Envoy's API (spec/discovery.md §4.5, §8.9). */
import { type DescField, type DescMessage, isFieldSet, type JsonValue, type Message } from '@bufbuild/protobuf';
import { type Any, anyUnpack } from '@bufbuild/protobuf/wkt';
import type * as E from 'fp-ts/lib/Either.js';
import { decodeForgiving, envoyApi, type ForgivenMessage } from '../envoy-api.ts';
import type { EnvoyPatch, PatchTarget } from './envoy-filter.ts';

const listener = 'envoy.config.listener.v3';
const route = 'envoy.config.route.v3';

/** What is patched. */
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

export type PatchValue = E.Either<string, ForgivenMessage> | undefined;

const decoded = new WeakMap<EnvoyPatch, PatchValue>();

/** Undefined where there is none, or none is needed; left: what is wrong with it. Decoded once. */
export function patchValue(patch: EnvoyPatch): PatchValue {
  if (!decoded.has(patch)) decoded.set(patch, decodeValue(patch));
  return decoded.get(patch);
}

function decodeValue({ applyTo, operation, value }: EnvoyPatch): PatchValue {
  if (value === undefined || operation === 'REMOVE') return undefined;
  const keepsTypes = operation === 'MERGE' || operation === 'MERGE_AND_REPLACE_LIST';
  return decodeForgiving(messageOf[applyTo], value as JsonValue, { keepsTypes });
}

/** Fields that Envoy will do without one day, at any depth: `envoy.config.cluster.v3.Cluster.http2_protocol_options`. */
export function deprecatedFields({ schema, message }: Pick<ForgivenMessage, 'schema' | 'message'>): readonly string[] {
  return [...new Set(deprecatedIn(schema, message))];
}

function deprecatedIn(schema: DescMessage, message: Message): string[] {
  if (schema.typeName === 'google.protobuf.Any') {
    const type = nameOf(message as Any);
    const packed = envoyApi().getMessage(type);
    const unpacked = packed && anyUnpack(message as Any, packed);
    return packed && unpacked ? deprecatedIn(packed, unpacked) : [];
  }
  if (schema.typeName.startsWith('google.protobuf.')) return [];
  return schema.fields
    .filter((field) => isFieldSet(message, field))
    .flatMap((field) => [
      ...(field.deprecated ? [`${schema.typeName}.${field.name}`] : []),
      ...messagesIn(field, message).flatMap((inner) => deprecatedIn(field.message!, inner)),
    ]);
}

function nameOf({ typeUrl }: Any): string {
  return typeUrl.slice(typeUrl.lastIndexOf('/') + 1);
}

/** The messages in a field; none in one of numbers and texts, nor in one that the library has as plain JSON. */
function messagesIn(field: DescField, message: Message): Message[] {
  if (field.message === undefined) return [];
  const fields = message as unknown as Record<string, unknown>;
  const value =
    field.oneof === undefined
      ? fields[field.localName]
      : (fields[field.oneof.localName] as { readonly value: unknown }).value;
  const all =
    field.fieldKind === 'list'
      ? (value as unknown[])
      : field.fieldKind === 'map'
        ? Object.values(value as object)
        : [value];
  return all.filter((one): one is Message => typeof one === 'object' && one !== null && '$typeName' in one);
}
