/**
 * Every message of Envoy's v3 API, for what a person writes themselves: the values of EnvoyFilters may be of any type,
 * and what generators make is of a few (`src/networking/messages/extension-types.ts`).
 *
 * The descriptors are read when first asked for: a mesh without EnvoyFilters never pays for them.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  createFileRegistry,
  type DescMessage,
  type FileRegistry,
  fromBinary,
  fromJson,
  type JsonValue,
  type Message,
  type Registry,
} from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import * as E from 'fp-ts/lib/Either.js';
import { packageRoot } from '../../runtime/package-root.ts';
import { canonicalJson } from './lenient-json.ts';
import { messageNameOf } from './message-name.ts';
import { typedStructs, typedStructViolation } from './typed-struct.ts';

/** Made by `npm run generate`; a build takes a copy along. */
const places = ['src/gen/envoy-api.binpb', 'dist/envoy-api.binpb'];

let loaded: FileRegistry | undefined;

/** @throws Error when the package is incomplete. */
export function envoyApi(): FileRegistry {
  loaded ??= createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(descriptorFile())));
  return loaded;
}

function descriptorFile(): string {
  const found = places.map((place) => join(packageRoot(), place)).find((file) => existsSync(file));
  if (found === undefined) throw new Error(`none of ${places.join(', ')} is in ${packageRoot()}: run npm run prepare`);
  return found;
}

/** A registry that knows what another does not: for showing resources in which people have put messages of any type. */
export function withWholeApi(known: Registry): Registry {
  return {
    kind: 'registry',
    [Symbol.iterator]: () => known[Symbol.iterator](),
    get: (name) => known.get(name) ?? envoyApi().get(name),
    getMessage: (name) => known.getMessage(name) ?? envoyApi().getMessage(name),
    getEnum: (name) => known.getEnum(name) ?? envoyApi().getEnum(name),
    getExtension: (name) => known.getExtension(name) ?? envoyApi().getExtension(name),
    getExtensionFor: (extendee, number) =>
      known.getExtensionFor(extendee, number) ?? envoyApi().getExtensionFor(extendee, number),
    getService: (name) => known.getService(name) ?? envoyApi().getService(name),
  };
}

export interface DecodedMessage {
  readonly schema: DescMessage;
  readonly message: Message;
}

/** A message, and what of its JSON the API does not have as it is known here. */
export interface ForgivenMessage extends DecodedMessage {
  readonly unknown: readonly string[];
}

/**
 * A message from its JSON form, messages that are packed in it (`@type`) included. What the API does not have is no
 * mistake: an Envoy that is newer than the API as it is known here may have it. A packed message of an unknown type, or
 * with an unknown field, goes to Envoy as it is written (`TypedStruct`), and Envoy judges it. Unknown fields elsewhere
 * cannot be sent, and are left out.
 *
 * @param typeUrl `type.googleapis.com/envoy.config.cluster.v3.Cluster`, or the name alone
 * @param json with field names as in the .proto files or in camel case; every form that Istio's decoder accepts (lenient-json.ts)
 * @param keepsTypes packed messages of known types keep their type and lose their unknown fields, so that they can be
 *   merged with others of the type
 * @returns left: what is wrong, as a sentence
 */
export function decodeForgiving(
  typeUrl: string,
  json: JsonValue,
  { keepsTypes }: { readonly keepsTypes: boolean },
): E.Either<string, ForgivenMessage> {
  const unknown: string[] = [];
  const schema = envoyApi().getMessage(messageNameOf(typeUrl));
  const canonical = schema === undefined ? json : canonicalJson(schema, json, envoyApi());
  const packed = asWritten(canonical, keepsTypes, unknown);
  if (E.isLeft(packed)) return packed;
  const strict = decode(typeUrl, packed.right, false);
  if (E.isRight(strict)) return E.right({ ...strict.right, unknown });
  const forgiven = decode(typeUrl, packed.right, true);
  return E.isLeft(forgiven) ? forgiven : E.right({ ...forgiven.right, unknown: [...unknown, strict.left] });
}

function decode(typeUrl: string, json: JsonValue, ignoreUnknownFields: boolean): E.Either<string, DecodedMessage> {
  const name = messageNameOf(typeUrl);
  const schema = envoyApi().getMessage(name);
  if (schema === undefined) return E.left(`${name} is no message of Envoy's API`);
  try {
    return E.right({ schema, message: fromJson(schema, json, { registry: envoyApi(), ignoreUnknownFields }) });
  } catch (error) {
    return E.left(sentenceOf(error));
  }
}

/** The JSON with every packed message that the API does not have wrapped up, the innermost first. */
function asWritten(json: JsonValue, keepsTypes: boolean, unknown: string[]): E.Either<string, JsonValue> {
  if (typeof json !== 'object' || json === null) return E.right(json);
  if (Array.isArray(json)) {
    const items: JsonValue[] = [];
    for (const item of json) {
      const made = asWritten(item, keepsTypes, unknown);
      if (E.isLeft(made)) return made;
      items.push(made.right);
    }
    return E.right(items);
  }
  const type = json['@type'];
  if (typeof type === 'string' && typedStructs.has(messageNameOf(type))) {
    const mistake = typedStructViolation(json, envoyApi());
    return mistake === undefined ? E.right(json) : E.left(mistake);
  }
  const fields: { [key: string]: JsonValue } = {};
  for (const [key, field] of Object.entries(json)) {
    const made = asWritten(field, keepsTypes, unknown);
    if (E.isLeft(made)) return made;
    fields[key] = made.right;
  }
  return typeof type === 'string' ? packedAsWritten(type, json, fields, keepsTypes, unknown) : E.right(fields);
}

function packedAsWritten(
  type: string,
  written: { readonly [key: string]: JsonValue },
  fields: { readonly [key: string]: JsonValue },
  keepsTypes: boolean,
  unknown: string[],
): E.Either<string, JsonValue> {
  const name = messageNameOf(type);
  const { '@type': _, ...content } = fields;
  if (envoyApi().getMessage(name) !== undefined) {
    const isOfJson = name.startsWith('google.protobuf.');
    if (keepsTypes || isOfJson) return E.right({ ...fields, '@type': urlOf(type) });
    const strict = decode(name, content, false);
    if (E.isRight(strict)) return E.right({ ...fields, '@type': urlOf(type) });
    const forgiven = decode(name, content, true);
    if (E.isLeft(forgiven)) return forgiven;
    unknown.push(strict.left);
  } else {
    unknown.push(`${name} is no message of Envoy's API`);
  }
  const { '@type': _type, ...value } = written;
  return E.right({ '@type': 'type.googleapis.com/xds.type.v3.TypedStruct', type_url: urlOf(type), value });
}

function urlOf(type: string): string {
  return type.includes('/') ? type : `type.googleapis.com/${type}`;
}

/** The library's words, without what its own classes are called. */
function sentenceOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(
    /^cannot decode message (\S+) from JSON/,
    '$1',
  );
}
