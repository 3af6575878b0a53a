import { type DescMessage, fromBinary, type JsonValue, type Message, toJson } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { ResourceSchema } from '../../../gen/istio/mcp/v1alpha1/resource_pb.ts';
import { type KindName, kinds } from '../../../model/kinds/index.ts';
import { messageOf } from '../../../runtime/errors.ts';
import { findField, textIn } from '../../../runtime/grpc/message-fields.ts';
import { isObject } from '../../../runtime/json-object.ts';

/** etcd has the same maximum. */
export const maxObjectBytes = 1_572_864;
export const maxObjectValues = 262_144;

export interface ReceivedObject {
  /** `NAMESPACE/NAME`. `undefined` if it cannot be decoded. */
  readonly name: string | undefined;
  readonly version: string;
  /** `spec` is a text if it cannot be decoded. */
  readonly object: Readonly<Record<string, unknown>>;
  /** `undefined` if the spec can be decoded. */
  readonly failure: string | undefined;
}

const maxNameLength = 512;

export function decodeResource(kind: KindName, schema: DescMessage, bytes: Uint8Array): ReceivedObject {
  const { group, versions } = kinds[kind];
  const objectType = { apiVersion: `${group}/${versions[0]}`, kind };
  if (bytes.length > maxObjectBytes) {
    const failure = `must have at most ${maxObjectBytes} bytes, got ${bytes.length}`;
    const name = nameIn(bytes);
    return { name, version: '', object: { ...objectType, metadata: metadataOf(name), spec: failure }, failure };
  }
  let name: string | undefined;
  let metadata: object = {};
  try {
    const resource = fromBinary(ResourceSchema, bytes);
    const { version = '', createTime, labels = {}, annotations = {} } = resource.metadata ?? {};
    name = validName(resource.metadata?.name);
    metadata = {
      ...metadataOf(name),
      ...{ labels, annotations },
      ...(createTime !== undefined && { creationTimestamp: timestampDate(createTime).toISOString() }),
    };
    const spec = specOf(kind, schema, resource.body);
    return { name, version, object: { ...objectType, metadata, spec }, failure: undefined };
  } catch (error) {
    const failure = `cannot be decoded: ${messageOf(error)}`;
    return { name, version: '', object: { ...objectType, metadata, spec: failure }, failure };
  }
}

function metadataOf(name: string | undefined): Record<string, unknown> {
  if (name === undefined) return {};
  const slash = name.indexOf('/');
  return { namespace: name.slice(0, slash), name: name.slice(slash + 1) };
}

function validName(name: string | undefined): string | undefined {
  return name !== undefined && name.length <= maxNameLength && /^[^/]+\/[^/]+$/.test(name) ? name : undefined;
}

export function nameIn(bytes: Uint8Array): string | undefined {
  try {
    const metadata = findField(bytes, 1);
    return metadata && validName(textIn(metadata, 1));
  } catch {
    return undefined;
  }
}

function specOf(
  kind: KindName,
  schema: DescMessage,
  body: { readonly typeUrl: string; readonly value: Uint8Array } | undefined,
): JsonValue {
  if (body === undefined) throw new Error('the resource has no body');
  const type = body.typeUrl.slice(body.typeUrl.lastIndexOf('/') + 1);
  if (!new RegExp(`^istio\\.[a-z0-9.]+\\.${kind}$`).test(type)) {
    throw new Error(`the body must be of type ${schema.typeName}, got "${body.typeUrl.slice(0, 200)}"`);
  }
  const message = fromBinary(schema, body.value);
  const values = countValues(message);
  if (values > maxObjectValues) throw new Error(`has more than ${maxObjectValues} fields and items`);
  const json = toJson(schema, message);
  addUnknownFields(schema, message, json);
  return json;
}

function countValues(message: unknown): number {
  let count = 0;
  const unvisitedValues: unknown[] = [message];
  while (unvisitedValues.length > 0) {
    const value = unvisitedValues.pop();
    if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) continue;
    const values = Object.values(value);
    count += values.length;
    if (count > maxObjectValues) return count;
    for (const nestedValue of values) unvisitedValues.push(nestedValue);
  }
  return count;
}

/**
 * Unknown fields get names such as `field12`, so that the kind's decoder treats them like unknown fields in a file:
 * as a warning, or as an error if they may restrict access.
 */
function addUnknownFields(schema: DescMessage, message: Message, json: JsonValue): void {
  if (!isObject(json)) return;
  const target = json as Record<string, unknown>;
  for (const { no } of message.$unknown ?? []) target[`field${no}`] = true;
  const values = message as unknown as Readonly<Record<string, unknown>>;
  for (const field of schema.fields) {
    const oneof =
      field.oneof === undefined ? undefined : (values[field.oneof.localName] as { case?: string; value?: unknown });
    const value =
      field.oneof === undefined ? values[field.localName] : oneof?.case === field.localName ? oneof.value : undefined;
    const writtenValue = target[field.jsonName];
    if (value === undefined || writtenValue === undefined) continue;
    if (field.fieldKind === 'message') addUnknownFields(field.message, value as Message, writtenValue as JsonValue);
    else if (field.fieldKind === 'list' && field.listKind === 'message') {
      for (const [index, item] of (value as readonly Message[]).entries())
        addUnknownFields(field.message, item, (writtenValue as readonly JsonValue[])[index] ?? null);
    } else if (field.fieldKind === 'map' && field.mapKind === 'message') {
      for (const [key, item] of Object.entries(value as Readonly<Record<string, Message>>))
        addUnknownFields(field.message, item, (writtenValue as Readonly<Record<string, JsonValue>>)[key] ?? null);
    }
  }
}
