/**
 * Every message of Envoy's v3 API, for what a person writes themselves: the values of EnvoyFilters may be of any type,
 * and what generators make is of a few (`extension-types.ts`).
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
} from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import * as E from 'fp-ts/lib/Either.js';
import { packageRoot } from '../runtime/package-root.ts';

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

export interface DecodedMessage {
  readonly schema: DescMessage;
  readonly message: Message;
}

/**
 * A message from its JSON form, as strictly as Envoy itself reads its configuration: a field that the message does not
 * have is a mistake, at any depth, packed messages (`@type`) included.
 *
 * @param typeUrl `type.googleapis.com/envoy.config.cluster.v3.Cluster`, or the name alone
 * @param json with field names as in the .proto files or in camel case
 * @returns left: what is wrong, as a sentence
 */
export function decodeStrict(typeUrl: string, json: JsonValue): E.Either<string, DecodedMessage> {
  const name = typeUrl.slice(typeUrl.lastIndexOf('/') + 1);
  const schema = envoyApi().getMessage(name);
  if (schema === undefined) return E.left(`${name} is no message of Envoy's API`);
  try {
    return E.right({ schema, message: fromJson(schema, json, { registry: envoyApi() }) });
  } catch (error) {
    return E.left(sentenceOf(error));
  }
}

/** The library's words, without what its own classes are called. */
function sentenceOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).replace(/^cannot decode message /, '');
}
