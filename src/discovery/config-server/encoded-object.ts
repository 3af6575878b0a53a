/** Encodes a configuration object for xDS, the reverse of `received-object.ts`. */
import { create, type DescMessage, fromJson, type JsonValue, toBinary } from '@bufbuild/protobuf';
import { anyPack, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ResourceSchema } from '../../gen/istio/mcp/v1alpha1/resource_pb.ts';
import type { Config } from '../../model/config/config.ts';
import { writtenSpec } from '../../model/config/written-spec.ts';
import { durationMsOf } from '../../model/fields/duration.ts';
import { isObject } from '../../runtime/json-object.ts';
import type { EncodedResource } from '../xds/resource-source.ts';
import { encodeValue } from '../xds/responses/encoding.ts';

const resourceType = 'type.googleapis.com/istio.mcp.v1alpha1.Resource';

/**
 * @returns `undefined` for placeholders and generated objects
 * @throws Error if the spec has no wire format
 */
export function encodeObject(config: Config, schema: DescMessage): EncodedResource | undefined {
  const spec = config.standsFor === undefined ? writtenSpec(config.spec) : undefined;
  if (spec === undefined) return undefined;
  const name = `${config.namespace}/${config.name}`;
  const { labels, annotations, creationTimestamp, resourceVersion: version } = config;
  const message = fromJson(schema, wireJson(JSON.parse(spec) as JsonValue, schema), { ignoreUnknownFields: true });
  const metadata = {
    ...{ name, version, labels: { ...labels }, annotations: { ...annotations } },
    ...(creationTimestamp > 0 && { createTime: timestampFromMs(creationTimestamp) }),
  };
  const value = toBinary(ResourceSchema, create(ResourceSchema, { metadata, body: anyPack(schema, message) }));
  return encodeValue(resourceType, value, name);
}

/** Converts durations such as `1m`, because Protobuf JSON allows only seconds. */
function wireJson(value: JsonValue, schema: DescMessage): JsonValue {
  if (!isObject(value)) return value;
  const fields = new Map(
    schema.fields.flatMap((field) => [[field.jsonName, field] as const, [field.name, field] as const]),
  );
  const entries = Object.entries(value).map(([name, fieldValue]): [string, JsonValue] => {
    const field = fields.get(name);
    const message = field?.message;
    if (field === undefined || message === undefined) return [name, fieldValue as JsonValue];
    const itemJson = (item: unknown): JsonValue => messageJson(item as JsonValue, message);
    if (field.fieldKind === 'list')
      return [name, Array.isArray(fieldValue) ? fieldValue.map(itemJson) : (fieldValue as JsonValue)];
    if (field.fieldKind === 'map')
      return [
        name,
        isObject(fieldValue)
          ? Object.fromEntries(Object.entries(fieldValue).map(([key, item]) => [key, itemJson(item)]))
          : (fieldValue as JsonValue),
      ];
    return [name, itemJson(fieldValue)];
  });
  return Object.fromEntries(entries);
}

function messageJson(value: JsonValue, message: DescMessage): JsonValue {
  if (message.typeName === 'google.protobuf.Duration') {
    const ms = typeof value === 'string' ? durationMsOf(value) : undefined;
    return ms === undefined ? value : `${ms / 1_000}s`;
  }
  return message.typeName.startsWith('google.protobuf.') ? value : wireJson(value, message);
}
