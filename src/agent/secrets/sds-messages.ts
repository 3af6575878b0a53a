/** Messages are encoded field by field, because generated types would load descriptors of half of Envoy's API. */

import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { secretType } from '../../../machines/discovery/xds/ads-types.ts';
import { type KeyPair, privateKeyPem } from '../../runtime/grpc/key-pair.ts';
import { fieldsOf, textIn, textOf } from '../../runtime/grpc/message-fields.ts';

export interface SecretRequest {
  readonly names: readonly string[];
  readonly typeUrl: string;
  readonly nonce: string;
  readonly error: string | undefined;
}

const maxNames = 100;
const maxNameCharacters = 4096;
/** The limit is for all names of a stream, because thousands of streams store them. */
const maxNamesCharacters = 32 * 1024;
const maxErrorCharacters = 1_000;

export class SecretRequestError extends Error {
  override readonly name = 'SecretRequestError';
}

/** @throws SecretRequestError for an invalid message, or beyond the limits */
export function readSecretRequest(bytes: Uint8Array): SecretRequest {
  try {
    return requestOf(bytes);
  } catch (error) {
    if (error instanceof SecretRequestError) throw error;
    throw new SecretRequestError('invalid DiscoveryRequest', { cause: error });
  }
}

function requestOf(bytes: Uint8Array): SecretRequest {
  const names = new Set<string>();
  let typeUrl = '';
  let nonce = '';
  let error: string | undefined;
  for (const { field, bytes: value } of fieldsOf(bytes)) {
    if (field === 3) names.add(textOf(value));
    else if (field === 4) typeUrl = textOf(value);
    else if (field === 5) nonce = textOf(value);
    else if (field === 6) error = statusMessageOf(value);
    if (names.size > maxNames) throw new SecretRequestError(`must request at most ${maxNames} secrets`);
  }
  let characters = 0;
  for (const name of names) {
    if (name.length > maxNameCharacters)
      throw new SecretRequestError(`secret name must have at most ${maxNameCharacters} characters, got ${name.length}`);
    characters += name.length;
  }
  if (characters > maxNamesCharacters)
    throw new SecretRequestError(
      `secret names must have at most ${maxNamesCharacters} characters in total, got ${characters}`,
    );
  return { names: [...names], typeUrl, nonce, error };
}

/** `message` of a google.rpc.Status. */
function statusMessageOf(status: Uint8Array): string {
  return textIn(status, 2)?.slice(0, maxErrorCharacters) || 'no reason given';
}

export function secretResponse(version: string, nonce: string, secret: Uint8Array): Uint8Array {
  const resource = new BinaryWriter();
  resource.tag(1, WireType.LengthDelimited).string(secretType);
  resource.tag(2, WireType.LengthDelimited).bytes(secret);
  const response = new BinaryWriter();
  response.tag(1, WireType.LengthDelimited).string(version);
  response.tag(2, WireType.LengthDelimited).bytes(resource.finish());
  response.tag(4, WireType.LengthDelimited).string(secretType);
  response.tag(5, WireType.LengthDelimited).string(nonce);
  return response.finish();
}

export function certificateSecret(name: string, { chain, key }: KeyPair): Uint8Array {
  const certificate = new BinaryWriter();
  certificate.tag(1, WireType.LengthDelimited).bytes(inlineBytes(Buffer.from(chain)));
  certificate.tag(2, WireType.LengthDelimited).bytes(inlineBytes(privateKeyPem(key)));
  return secretOf(name, 2, certificate.finish());
}

/** Roots and lists are in PEM. */
export function rootsSecret(name: string, roots: string, revocationLists = ''): Uint8Array {
  const validation = new BinaryWriter();
  validation.tag(1, WireType.LengthDelimited).bytes(inlineBytes(Buffer.from(roots)));
  if (revocationLists !== '')
    validation.tag(7, WireType.LengthDelimited).bytes(inlineBytes(Buffer.from(revocationLists)));
  return secretOf(name, 4, validation.finish());
}

function secretOf(name: string, field: 2 | 4, content: Uint8Array): Uint8Array {
  const secret = new BinaryWriter();
  secret.tag(1, WireType.LengthDelimited).string(name);
  secret.tag(field, WireType.LengthDelimited).bytes(content);
  return secret.finish();
}

function inlineBytes(bytes: Uint8Array): Uint8Array {
  return new BinaryWriter().tag(2, WireType.LengthDelimited).bytes(bytes).finish();
}
