/** Finds messages of Envoy's API at any depth, including packed messages and their JSON form. */
import { type DescField, type DescMessage, isFieldSet, type JsonValue, type Message } from '@bufbuild/protobuf';
import { type Any, anyUnpack } from '@bufbuild/protobuf/wkt';
import * as E from 'fp-ts/lib/Either.js';
import { type DecodedMessage, decodeLenient, envoyApi } from './envoy-api.ts';
import { messageNameOf } from './message-name.ts';

export function* messagesWithin(schema: DescMessage, message: Message): Generator<DecodedMessage> {
  const packedMessage = unpackMessage(schema, message);
  if (packedMessage !== undefined) return yield* messagesWithin(packedMessage.schema, packedMessage.message);
  if (schema.typeName.startsWith('google.protobuf.')) return;
  yield { schema, message };
  for (const field of schema.fields) {
    if (!isFieldSet(message, field)) continue;
    for (const nestedMessage of messagesIn(field, message)) yield* messagesWithin(field.message!, nestedMessage);
  }
}

interface TypedStruct {
  readonly typeUrl: string;
  readonly value?: JsonValue;
}

function unpackMessage({ typeName }: DescMessage, message: Message): DecodedMessage | undefined {
  if (typeName === 'google.protobuf.Any') {
    const anyMessage = message as Any;
    const schema = envoyApi().getMessage(messageNameOf(anyMessage.typeUrl));
    const unpackedMessage = schema && anyUnpack(anyMessage, schema);
    return schema && unpackedMessage && { schema, message: unpackedMessage };
  }
  if (typeName !== 'xds.type.v3.TypedStruct' && typeName !== 'udpa.type.v1.TypedStruct') return undefined;
  const { typeUrl, value = {} } = message as Message & TypedStruct;
  if (envoyApi().getMessage(messageNameOf(typeUrl)) === undefined) return undefined;
  const decodedMessage = decodeLenient(typeUrl, value, { keepsTypes: true });
  return E.isRight(decodedMessage) ? decodedMessage.right : undefined;
}

function messagesIn(field: DescField, message: Message): Message[] {
  if (field.message === undefined) return [];
  const fields = message as unknown as Record<string, unknown>;
  const value =
    field.oneof === undefined
      ? fields[field.localName]
      : (fields[field.oneof.localName] as { readonly value: unknown }).value;
  const values =
    field.fieldKind === 'list'
      ? (value as unknown[])
      : field.fieldKind === 'map'
        ? Object.values(value as object)
        : [value];
  return values.filter(
    (candidate): candidate is Message =>
      typeof candidate === 'object' && candidate !== null && '$typeName' in candidate,
  );
}
