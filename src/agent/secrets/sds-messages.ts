/**
 * The few messages of a secret server, field by field: the generated types of them would bring in descriptors of half of Envoy's
 * API, which the agent has no other use for.
 */

import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { secretType } from '../../../machines/discovery/xds/ads-types.ts';
import { type KeyPair, privateKeyPem } from '../../runtime/grpc/key-pair.ts';
import { fieldsOf, textIn, textOf } from '../../runtime/grpc/message-fields.ts';

/** What is read of a DiscoveryRequest. */
export interface SecretRequest {
  readonly names: readonly string[];
  readonly typeUrl: string;
  readonly nonce: string;
  /** Why the client refused what it got last; undefined: it did not. */
  readonly error: string | undefined;
}

/** A client asks for a secret or a few. */
const mostNames = 100;
const longestName = 4096;
/** Of all together: they are kept as long as the stream is there, of which there may be some thousands. */
const mostCharacters = 32 * 1024;
const mostErrorCharacters = 1_000;

export class SecretRequestError extends Error {
  override readonly name = 'SecretRequestError';
}

/** @throws SecretRequestError for what is no DiscoveryRequest, or asks for too much */
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
    if (names.size > mostNames) throw new SecretRequestError(`must request at most ${mostNames} secrets`);
  }
  let characters = 0;
  for (const name of names) {
    if (name.length > longestName)
      throw new SecretRequestError(`secret name must have at most ${longestName} characters, got ${name.length}`);
    characters += name.length;
  }
  if (characters > mostCharacters)
    throw new SecretRequestError(
      `secret names must have at most ${mostCharacters} characters in total, got ${characters}`,
    );
  return { names: [...names], typeUrl, nonce, error };
}

/** The message of a google.rpc.Status. */
function statusMessageOf(status: Uint8Array): string {
  return textIn(status, 2)?.slice(0, mostErrorCharacters) || 'no reason given';
}

/** A DiscoveryResponse with one secret. */
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

/** A Secret with a certificate and its key, in PEM. */
export function certificateSecret(name: string, { chain, key }: KeyPair): Uint8Array {
  const certificate = new BinaryWriter();
  certificate.tag(1, WireType.LengthDelimited).bytes(inline(Buffer.from(chain)));
  certificate.tag(2, WireType.LengthDelimited).bytes(inline(privateKeyPem(key)));
  return secretOf(name, 2, certificate.finish());
}

/** A Secret with roots and, if there are any, their revocation lists, in PEM. */
export function rootsSecret(name: string, roots: string, lists = ''): Uint8Array {
  const validation = new BinaryWriter();
  validation.tag(1, WireType.LengthDelimited).bytes(inline(Buffer.from(roots)));
  if (lists !== '') validation.tag(7, WireType.LengthDelimited).bytes(inline(Buffer.from(lists)));
  return secretOf(name, 4, validation.finish());
}

function secretOf(name: string, field: 2 | 4, content: Uint8Array): Uint8Array {
  const secret = new BinaryWriter();
  secret.tag(1, WireType.LengthDelimited).string(name);
  secret.tag(field, WireType.LengthDelimited).bytes(content);
  return secret.finish();
}

/** A DataSource with the bytes in it. */
function inline(bytes: Uint8Array): Uint8Array {
  return new BinaryWriter().tag(2, WireType.LengthDelimited).bytes(bytes).finish();
}
