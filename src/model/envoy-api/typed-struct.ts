/** Validates TypedStructs. Envoy decodes their JSON more strictly than Istio decodes the rest of an EnvoyFilter. */
import type { DescField, DescMessage, JsonValue, Registry } from '@bufbuild/protobuf';
import { isObject } from '../../runtime/json-object.ts';
import { messageNameOf } from './message-name.ts';

export const typedStructs: ReadonlySet<string> = new Set(['udpa.type.v1.TypedStruct', 'xds.type.v3.TypedStruct']);

/** The protobuf JSON form; Envoy rejects Go's forms `500ms`, `1m` and `.5s`. */
const durationText = /^-?\d{1,12}(\.\d{1,9})?s$/;

/** Returns why Envoy rejects a duration in a TypedStruct; `undefined` also if the type is unknown. */
export function typedStructViolation(
  json: Readonly<Record<string, JsonValue>>,
  registry: Registry,
): string | undefined {
  const schema = schemaOf(json.type_url ?? json.typeUrl, registry);
  if (schema === undefined) return undefined;
  for (const [path, value] of durationsIn(schema, json.value ?? {}, 'value', registry)) {
    if (typeof value !== 'string' || !durationText.test(value))
      return `TypedStruct of ${schema.typeName}: ${path} must be a duration in seconds such as "0.5s", which Envoy reads itself, got ${JSON.stringify(value)}`;
  }
  return undefined;
}

function schemaOf(typeUrl: JsonValue | undefined, registry: Registry): DescMessage | undefined {
  return typeof typeUrl === 'string' ? registry.getMessage(messageNameOf(typeUrl)) : undefined;
}

function* durationsIn(
  schema: DescMessage,
  json: JsonValue,
  path: string,
  registry: Registry,
): Generator<readonly [string, JsonValue]> {
  if (json === null) return;
  if (schema.typeName === 'google.protobuf.Duration') return yield [path, json];
  if (!isObject(json)) return;
  const values = json as Readonly<Record<string, JsonValue>>;
  if (schema.typeName === 'google.protobuf.Any') {
    const packedSchema = schemaOf(values['@type'], registry);
    const content = packedSchema?.typeName.startsWith('google.protobuf.') ? values.value : values;
    if (packedSchema !== undefined && content !== undefined) yield* durationsIn(packedSchema, content, path, registry);
    return;
  }
  if (typedStructs.has(schema.typeName)) {
    const packedSchema = schemaOf(values.type_url ?? values.typeUrl, registry);
    if (packedSchema !== undefined && values.value !== undefined)
      yield* durationsIn(packedSchema, values.value, `${path}.value`, registry);
    return;
  }
  for (const field of schema.fields) {
    const name = [field.name, field.jsonName].find((candidate) => Object.hasOwn(values, candidate));
    if (name !== undefined && field.message !== undefined)
      yield* durationsOfField(field, field.message, values[name]!, `${path}.${name}`, registry);
  }
}

function* durationsOfField(
  { fieldKind }: DescField,
  message: DescMessage,
  json: JsonValue,
  path: string,
  registry: Registry,
): Generator<readonly [string, JsonValue]> {
  if (fieldKind === 'list' && Array.isArray(json)) {
    for (const [index, item] of json.entries()) yield* durationsIn(message, item, `${path}[${index}]`, registry);
  } else if (fieldKind === 'map' && isObject(json)) {
    for (const [key, item] of Object.entries(json as Record<string, JsonValue>))
      yield* durationsIn(message, item, `${path}[${JSON.stringify(key)}]`, registry);
  } else if (fieldKind === 'message') yield* durationsIn(message, json, path, registry);
}
