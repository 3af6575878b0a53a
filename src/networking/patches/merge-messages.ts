/**
 * Merges messages with the rules of EnvoyFilters: set fields override, messages merge field by field, lists append. Packed messages of one type
 * merge, too. Durations, wrappers and similar values override. Inputs are not modified.
 */
import { type DescField, type DescMessage, fromBinary, isFieldSet, type Message } from '@bufbuild/protobuf';
import { type Any, AnySchema } from '@bufbuild/protobuf/wkt';
import { envoyApi } from '../../model/envoy-api/envoy-api.ts';
import { messageNameOf } from '../../model/envoy-api/message-name.ts';
import { ownValue } from '../../runtime/json-object.ts';
import { encodeDeterministically } from '../messages/wire-form.ts';

export type ListMerge = 'append' | 'replace';

/** The message is addressed to the author of the patch. */
export class PatchFailure extends Error {}

type Fields = Record<string, unknown>;
interface OneofValue {
  readonly case: string;
  readonly value: unknown;
}

/** @throws PatchFailure if packed messages have different types */
export function mergeMessages<M extends Message>(schema: DescMessage, target: M, value: Message, lists: ListMerge): M {
  if (isAnotherExtension(schema, target, value)) return value as M;
  const result = shallowCopy(target);
  for (const field of schema.fields) {
    if (!isFieldSet(value, field)) continue;
    const current = isFieldSet(target, field) ? valueOf(field, target) : undefined;
    const mergedValue =
      current === undefined ? valueOf(field, value) : mergedField(field, current, valueOf(field, value), lists);
    const fields = result as unknown as Fields;
    if (field.oneof === undefined) fields[field.localName] = mergedValue;
    else fields[field.oneof.localName] = { case: field.localName, value: mergedValue } satisfies OneofValue;
  }
  return result;
}

export function shallowCopy<M extends object>(message: M): M {
  return Object.assign(Object.create(Object.getPrototypeOf(message)) as M, message);
}

/** Whether an extension (`{name, typed_config}`) replaces one with another name instead of being merged. */
function isAnotherExtension(schema: DescMessage, target: Message, value: Message): boolean {
  const isExtension = schema.fields.some(
    ({ name, message }) => name === 'typed_config' && message?.typeName === anyType,
  );
  if (!isExtension) return false;
  const [targetName, valueName] = [nameOf(target), nameOf(value)];
  return targetName !== undefined && valueName !== undefined && targetName !== valueName;
}

function nameOf(message: Message): string | undefined {
  const { name } = message as unknown as { readonly name?: unknown };
  return typeof name === 'string' && name !== '' ? name : undefined;
}

function valueOf(field: DescField, message: Message): unknown {
  const fields = message as unknown as Fields;
  return field.oneof === undefined ? fields[field.localName] : (fields[field.oneof.localName] as OneofValue).value;
}

function mergedField(field: DescField, current: unknown, value: unknown, lists: ListMerge): unknown {
  switch (field.fieldKind) {
    case 'scalar':
    case 'enum':
      return value;
    case 'list':
      return lists === 'replace' ? value : [...(current as unknown[]), ...(value as unknown[])];
    case 'map':
      return mergedMap(field, current as Fields, value as Fields, lists);
    case 'message':
      return mergedMessage(field.message, current, value, lists);
  }
}

/** Map entries replace existing ones. Packed messages are merged, because equal keys mean the same extension. */
function mergedMap(field: DescField & { fieldKind: 'map' }, current: Fields, value: Fields, lists: ListMerge): Fields {
  const result = { ...current, ...value };
  if (field.message?.typeName !== anyType) return result;
  for (const key of Object.keys(value)) {
    const [currentAny, patchAny] = [ownValue(current, key) as Any | undefined, value[key] as Any];
    if (currentAny !== undefined && typeOf(currentAny) === typeOf(patchAny))
      result[key] = mergedPacked(currentAny, patchAny, lists);
  }
  return result;
}

const anyType = 'google.protobuf.Any';

function mergedMessage(schema: DescMessage, current: unknown, value: unknown, lists: ListMerge): unknown {
  if (schema.typeName === anyType) return mergedPacked(current as Any, value as Any, lists);
  if (schema.typeName === 'google.protobuf.Struct') return { ...(current as object), ...(value as object) };
  if (schema.typeName.startsWith('google.protobuf.')) return value;
  return mergeMessages(schema, current as Message, value as Message, lists);
}

/** @throws PatchFailure if the types differ */
export function mergedPacked(current: Any, value: Any, lists: ListMerge): Any {
  const [currentType, patchType] = [typeOf(current), typeOf(value)];
  const schema = envoyApi().getMessage(currentType);
  if (currentType !== patchType) throw new PatchFailure(`${patchType} cannot be merged into ${currentType}`);
  if (schema === undefined)
    throw new PatchFailure(`${currentType} is not a message of Envoy's API and cannot be merged`);
  const [target, patch] = [fromBinary(schema, current.value), fromBinary(schema, value.value)];
  if (isTypedStruct(target) && target.typeUrl !== (patch as typeof target).typeUrl) {
    throw new PatchFailure(`${(patch as typeof target).typeUrl} cannot be merged into ${target.typeUrl}`);
  }
  const copy = shallowCopy(current);
  return Object.assign(copy, { value: encodeDeterministically(schema, mergeMessages(schema, target, patch, lists)) });
}

function isTypedStruct(message: Message): message is Message & { typeUrl: string } {
  return message.$typeName.endsWith('.type.v3.TypedStruct') || message.$typeName === 'udpa.type.v1.TypedStruct';
}

function typeOf({ typeUrl }: Any): string {
  return messageNameOf(typeUrl);
}

export function repackAny(current: Any, schema: DescMessage, message: Message): Any {
  return Object.assign(shallowCopy(current), {
    $typeName: AnySchema.typeName,
    value: encodeDeterministically(schema, message),
  });
}
