/**
 * Converts JSON that Istio's decoder of EnvoyFilter values accepts (Go's `github.com/golang/protobuf/jsonpb` 1.5) to canonical protobuf JSON. Beyond
 * the canonical form, the decoder accepts Go durations (`500ms`), numbers in padded strings, and `null` in lists and maps as the type's zero value.
 * Two fields of a oneof remain errors; Istio silently uses one.
 */
import type { DescField, DescMessage, JsonValue, Registry } from '@bufbuild/protobuf';
import { ScalarType } from '@bufbuild/protobuf';
import { isObject } from '../../runtime/json-object.ts';
import { durationMsOf } from '../fields/duration.ts';
import { isJsonNumber } from '../fields/quoted-number.ts';
import { messageNameOf } from './message-name.ts';

const opaqueTypes: ReadonlySet<string> = new Set([
  ...['Struct', 'Value', 'ListValue', 'Timestamp', 'FieldMask', 'Empty'].map((name) => `google.protobuf.${name}`),
  ...['udpa.type.v1.TypedStruct', 'xds.type.v3.TypedStruct'],
]);

/** Unrecognized values stay unchanged, and the strict decoder reports them. */
export function canonicalJson(schema: DescMessage, json: JsonValue, registry: Registry): JsonValue {
  const { typeName } = schema;
  if (typeName === 'google.protobuf.Duration') return canonicalDuration(json);
  if (typeName === 'google.protobuf.Any') return canonicalAny(json, registry);
  if (opaqueTypes.has(typeName)) return json;
  const [wrappedField] = schema.fields;
  if (isWrapper(schema) && wrappedField?.fieldKind === 'scalar' && !isObject(json))
    return canonicalScalar(wrappedField.scalar, json);
  if (!isObject(json)) return json;
  const fields = new Map(schema.fields.flatMap((field) => [field.name, field.jsonName].map((name) => [name, field])));
  return Object.fromEntries(
    Object.entries(json as Record<string, JsonValue>).map(([name, value]) => {
      const field = fields.get(name);
      return [name, field === undefined ? value : canonicalField(field, value, registry)];
    }),
  );
}

function canonicalField(field: DescField, value: JsonValue, registry: Registry): JsonValue {
  if (field.fieldKind === 'list' && Array.isArray(value)) {
    return value.map((item) => canonicalElement(field, item, registry));
  }
  if (field.fieldKind === 'map' && isObject(value)) {
    const entries = Object.entries(value as Record<string, JsonValue>);
    return Object.fromEntries(entries.map(([key, item]) => [key, canonicalElement(field, item, registry)]));
  }
  if (field.fieldKind === 'message') return canonicalJson(field.message, value, registry);
  return field.fieldKind === 'scalar' ? canonicalScalar(field.scalar, value) : value;
}

function canonicalElement(
  field: Extract<DescField, { fieldKind: 'list' | 'map' }>,
  item: JsonValue,
  registry: Registry,
): JsonValue {
  const kind = field.fieldKind === 'list' ? field.listKind : field.mapKind;
  if (kind === 'message') return item === null ? zeroOf(field.message!) : canonicalJson(field.message!, item, registry);
  if (kind === 'scalar') return item === null ? zeroOfScalar(field.scalar!) : canonicalScalar(field.scalar!, item);
  return item === null ? 0 : item;
}

function zeroOf(schema: DescMessage): JsonValue {
  if (schema.typeName === 'google.protobuf.Value') return null;
  if (schema.typeName === 'google.protobuf.Duration') return '0s';
  const [wrappedField] = schema.fields;
  return isWrapper(schema) && wrappedField?.fieldKind === 'scalar' ? zeroOfScalar(wrappedField.scalar) : {};
}

function zeroOfScalar(type: ScalarType): JsonValue {
  if (type === ScalarType.STRING || type === ScalarType.BYTES) return '';
  return type === ScalarType.BOOL ? false : 0;
}

function isWrapper({ typeName }: DescMessage): boolean {
  return /^google\.protobuf\.\w+Value$/.test(typeName);
}

const namedNumbers: ReadonlySet<string> = new Set(['NaN', 'Infinity', '-Infinity']);

/** Accepts JSON numbers in strings, as Go's protojson and jsonpb do, as well as protojson's `1e3` for an integer and jsonpb's spaces. */
function canonicalScalar(type: ScalarType, value: JsonValue): JsonValue {
  const isNumber = type !== ScalarType.STRING && type !== ScalarType.BYTES && type !== ScalarType.BOOL;
  if (!isNumber || typeof value !== 'string') return value;
  const trimmedText = value.trim();
  if (namedNumbers.has(trimmedText)) return trimmedText;
  // The strict decoder would accept every number of JavaScript, such as 0x10.
  if (!isJsonNumber(trimmedText)) return `${trimmedText} (not a JSON number)`;
  const number = Number(trimmedText);
  return /[.eE]/.test(trimmedText) && Number.isSafeInteger(number) ? String(number) : trimmedText;
}

/** Converts a Go duration, such as `1m30s`, to seconds, such as `90s`. */
function canonicalDuration(json: JsonValue): JsonValue {
  if (typeof json !== 'string') return json;
  const ms = durationMsOf(json);
  if (ms === undefined) return json;
  const sign = ms < 0 ? '-' : '';
  const nanoseconds = BigInt(Math.round(Math.abs(ms) * 1e6));
  const fraction = String(nanoseconds % 1_000_000_000n).padStart(9, '0');
  return `${sign}${nanoseconds / 1_000_000_000n}.${fraction}s`;
}

function canonicalAny(json: JsonValue, registry: Registry): JsonValue {
  if (!isObject(json)) return json;
  const { '@type': type, ...content } = json as Record<string, JsonValue>;
  if (typeof type !== 'string') return json;
  const schema = registry.getMessage(messageNameOf(type));
  if (schema === undefined) return json;
  // In `Any`, types with a special JSON form are in the field `value`.
  if (schema.typeName.startsWith('google.protobuf.') && 'value' in content) {
    return { ...content, '@type': type, value: canonicalJson(schema, content.value!, registry) };
  }
  return { ...(canonicalJson(schema, content, registry) as Record<string, JsonValue>), '@type': type };
}
