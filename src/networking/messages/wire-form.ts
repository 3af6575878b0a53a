/** Deterministic encoding: equal messages have equal bytes, regardless of map insertion order. */
import { type DescField, type DescMessage, type Message, toBinary } from '@bufbuild/protobuf';
import { encodeBackwards } from './message-writer.ts';

export function encodeDeterministically(schema: DescMessage, message: Message): Uint8Array {
  return encodeBackwards(schema, message) ?? orderedBinary(schema, message);
}

/**
 * Sorts map and JSON object keys, which protobuf-es encodes in insertion order. Visits only fields that contain maps, computed once per descriptor.
 */
export function orderedBinary(schema: DescMessage, message: Message): Uint8Array {
  return toBinary(schema, withOrderedMaps(schema, message));
}

type Fields = Record<string, unknown>;
type Ordering = (value: unknown) => unknown;

interface OrderedField {
  readonly localName: string;
  readonly oneof: string | undefined;
  readonly applyOrder: Ordering;
}

const structType = 'google.protobuf.Struct';
const orderedFields = new WeakMap<DescMessage, readonly OrderedField[]>();

function withOrderedMaps(schema: DescMessage, message: Message): Message {
  const source = message as unknown as Fields;
  let copy: Fields | undefined;
  for (const { localName, oneof, applyOrder } of fieldsOf(schema)) {
    const selectedField = oneof === undefined ? undefined : (source[oneof] as { case?: string; value: unknown });
    if (oneof !== undefined && selectedField!.case !== localName) continue;
    const value = oneof === undefined ? source[localName] : selectedField!.value;
    if (value === undefined) continue;
    const orderedValue = applyOrder(value);
    if (orderedValue === value) continue;
    copy ??= Object.assign(Object.create(Object.getPrototypeOf(source)), source) as Fields;
    if (oneof === undefined) copy[localName] = orderedValue;
    else copy[oneof] = { case: localName, value: orderedValue };
  }
  return (copy ?? source) as unknown as Message;
}

function fieldsOf(schema: DescMessage): readonly OrderedField[] {
  let fields = orderedFields.get(schema);
  if (fields === undefined) {
    fields = schema.fields.flatMap((field) => {
      const applyOrder = orderingOf(field);
      return applyOrder === undefined
        ? []
        : [{ localName: field.localName, oneof: field.oneof?.localName, applyOrder }];
    });
    orderedFields.set(schema, fields);
  }
  return fields;
}

function orderingOf(field: DescField): Ordering | undefined {
  const nestedOrdering = field.message === undefined ? undefined : orderingOfMessage(field.message);
  if (field.fieldKind === 'map') return (value) => orderedMap(value as Fields, nestedOrdering);
  if (nestedOrdering === undefined) return undefined;
  return field.fieldKind === 'list'
    ? (value) => orderedList(value as readonly unknown[], nestedOrdering)
    : nestedOrdering;
}

function orderingOfMessage(schema: DescMessage): Ordering | undefined {
  if (schema.typeName === structType) return orderedJson;
  return containsMap(schema, new Set()) ? (value) => withOrderedMaps(schema, value as Message) : undefined;
}

function containsMap(schema: DescMessage, seenSchemas: Set<DescMessage>): boolean {
  if (schema.typeName === structType) return true;
  if (seenSchemas.has(schema)) return false;
  seenSchemas.add(schema);
  return schema.fields.some(
    (field) => field.fieldKind === 'map' || (field.message !== undefined && containsMap(field.message, seenSchemas)),
  );
}

function orderedMap(map: Fields, nestedOrdering: Ordering | undefined): Fields {
  const keys = Object.keys(map);
  const areKeysSorted = keys.every((key, index) => index === 0 || keys[index - 1]! < key);
  // Creates an object without prototype, in which `__proto__` is an ordinary key.
  const emptyCopy = (): Fields => Object.create(null) as Fields;
  let copy = areKeysSorted ? undefined : emptyCopy();
  for (const key of areKeysSorted ? keys : keys.sort()) {
    const orderedValue = nestedOrdering === undefined ? map[key] : nestedOrdering(map[key]);
    if (copy === undefined && orderedValue !== map[key]) copy = Object.assign(emptyCopy(), map);
    if (copy !== undefined) copy[key] = orderedValue;
  }
  return copy ?? map;
}

function orderedList(list: readonly unknown[], nestedOrdering: Ordering): readonly unknown[] {
  let copy: unknown[] | undefined;
  for (const [index, item] of list.entries()) {
    const orderedValue = nestedOrdering(item);
    if (orderedValue === item) continue;
    copy ??= [...list];
    copy[index] = orderedValue;
  }
  return copy ?? list;
}

/** protobuf-es represents a Struct field as plain JSON. A top-level Struct is a message with a map. */
function orderedJson(value: unknown): unknown {
  if (Array.isArray(value)) return orderedList(value, orderedJson);
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  return orderedMap(value as Fields, orderedJson);
}
