/**
 * Merging of messages, as patches do (spec/discovery.md §8.9): what is set overrides, messages are merged field by field,
 * lists grow at their end. Packed messages of one type are merged as if they were not packed; durations, wrapped numbers
 * and the like are values and override. Nothing is changed in place: what nobody touches is shared with the result.
 */
import { type DescField, type DescMessage, fromBinary, isFieldSet, type Message } from '@bufbuild/protobuf';
import { type Any, AnySchema } from '@bufbuild/protobuf/wkt';
import { envoyApi } from '../../model/envoy-api/envoy-api.ts';
import { messageNameOf } from '../../model/envoy-api/message-name.ts';
import { ownValue } from '../../runtime/json-object.ts';
import { wireForm } from '../messages/wire-form.ts';

/** What lists of the value do to those of the target. */
export type ListMerge = 'append' | 'replace';

/** Why a patch cannot be applied, in words for whoever wrote it. */
export class PatchFailure extends Error {}

type Fields = Record<string, unknown>;
interface Chosen {
  readonly case: string;
  readonly value: unknown;
}

/** @throws PatchFailure when packed messages of different types meet. */
export function merged<M extends Message>(schema: DescMessage, target: M, value: Message, lists: ListMerge): M {
  if (isAnotherExtension(schema, target, value)) return value as M;
  const result = shallowCopy(target);
  for (const field of schema.fields) {
    if (!isFieldSet(value, field)) continue;
    const before = isFieldSet(target, field) ? valueOf(field, target) : undefined;
    const after =
      before === undefined ? valueOf(field, value) : mergedField(field, before, valueOf(field, value), lists);
    const fields = result as unknown as Fields;
    if (field.oneof === undefined) fields[field.localName] = after;
    else fields[field.oneof.localName] = { case: field.localName, value: after } satisfies Chosen;
  }
  return result;
}

/** A copy of the message alone: what lies in it is the same. */
export function shallowCopy<M extends object>(message: M): M {
  return Object.assign(Object.create(Object.getPrototypeOf(message)) as M, message);
}

/** A `{name, typed_config}` of another name is another thing, and not the same one with other settings. */
function isAnotherExtension(schema: DescMessage, target: Message, value: Message): boolean {
  const isExtension = schema.fields.some(
    ({ name, message }) => name === 'typed_config' && message?.typeName === anyType,
  );
  if (!isExtension) return false;
  const [old, now] = [nameOf(target), nameOf(value)];
  return old !== undefined && now !== undefined && old !== now;
}

function nameOf(message: Message): string | undefined {
  const { name } = message as unknown as { readonly name?: unknown };
  return typeof name === 'string' && name !== '' ? name : undefined;
}

function valueOf(field: DescField, message: Message): unknown {
  const fields = message as unknown as Fields;
  return field.oneof === undefined ? fields[field.localName] : (fields[field.oneof.localName] as Chosen).value;
}

function mergedField(field: DescField, before: unknown, value: unknown, lists: ListMerge): unknown {
  switch (field.fieldKind) {
    case 'scalar':
    case 'enum':
      return value;
    case 'list':
      return lists === 'replace' ? value : [...(before as unknown[]), ...(value as unknown[])];
    case 'map':
      return mergedMap(field, before as Fields, value as Fields, lists);
    case 'message':
      return mergedMessage(field.message, before, value, lists);
  }
}

/** Entries of one key are not merged, but for packed messages, which are the same extension then. */
function mergedMap(field: DescField & { fieldKind: 'map' }, before: Fields, value: Fields, lists: ListMerge): Fields {
  const result = { ...before, ...value };
  if (field.message?.typeName !== anyType) return result;
  for (const key of Object.keys(value)) {
    const [old, now] = [ownValue(before, key) as Any | undefined, value[key] as Any];
    if (old !== undefined && typeOf(old) === typeOf(now)) result[key] = mergedPacked(old, now, lists);
  }
  return result;
}

const anyType = 'google.protobuf.Any';

function mergedMessage(schema: DescMessage, before: unknown, value: unknown, lists: ListMerge): unknown {
  if (schema.typeName === anyType) return mergedPacked(before as Any, value as Any, lists);
  if (schema.typeName === 'google.protobuf.Struct') return { ...(before as object), ...(value as object) };
  if (schema.typeName.startsWith('google.protobuf.')) return value;
  return merged(schema, before as Message, value as Message, lists);
}

/** @throws PatchFailure when they are of different types. */
export function mergedPacked(before: Any, value: Any, lists: ListMerge): Any {
  const [old, now] = [typeOf(before), typeOf(value)];
  const schema = envoyApi().getMessage(old);
  if (old !== now) throw new PatchFailure(`${now} cannot be merged into ${old}`);
  if (schema === undefined) throw new PatchFailure(`${old} is not a message of Envoy's API and cannot be merged`);
  const [target, patch] = [fromBinary(schema, before.value), fromBinary(schema, value.value)];
  if (isTypedStruct(target) && target.typeUrl !== (patch as typeof target).typeUrl) {
    throw new PatchFailure(`${(patch as typeof target).typeUrl} cannot be merged into ${target.typeUrl}`);
  }
  const copy = shallowCopy(before);
  return Object.assign(copy, { value: wireForm(schema, merged(schema, target, patch, lists)) });
}

/** Any JSON for a type that is named in it. */
function isTypedStruct(message: Message): message is Message & { typeUrl: string } {
  return message.$typeName.endsWith('.type.v3.TypedStruct') || message.$typeName === 'udpa.type.v1.TypedStruct';
}

function typeOf({ typeUrl }: Any): string {
  return messageNameOf(typeUrl);
}

/** A message as it is packed again after a change of what was in it. */
export function repacked(before: Any, schema: DescMessage, message: Message): Any {
  return Object.assign(shallowCopy(before), { $typeName: AnySchema.typeName, value: wireForm(schema, message) });
}
