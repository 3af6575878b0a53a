/**
 * Discovery messages on the wire, as far as an agent that passes them on has to know them: whose they are, and those of its own
 * subscriptions. Both protocols have a response's type in field 4 and its nonce in field 5.
 */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { grpcCodes } from '../../runtime/grpc/call-status.ts';
import { fieldIn, fieldsOf, textIn, textOf } from '../../runtime/grpc/message-fields.ts';

export type Protocol = 'sotw' | 'delta';

export const methods: Readonly<Record<Protocol, string>> = {
  sotw: '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
  delta: '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
};

/** What Envoy may be sent. */
export const envoyTypes = 'type.googleapis.com/envoy.';

const mostRefusal = 1_000;

export interface RequestHead {
  /** Empty: it names none. */
  readonly typeUrl: string;
  /** Nonce of the response that the request answers; empty: it answers none. */
  readonly nonce: string;
  /** Why that is rejected; undefined: it is not. */
  readonly rejection: string | undefined;
}

const headFields = {
  sotw: { typeUrl: 4, nonce: 5, rejection: 6 },
  delta: { typeUrl: 2, nonce: 6, rejection: 7 },
} as const;

/** What a request is about. Throws when the bytes are no message. */
export function readRequest(message: Uint8Array, protocol: Protocol): RequestHead {
  const fields = headFields[protocol];
  let [typeUrl, nonce] = ['', ''];
  let rejection: string | undefined;
  for (const { field, bytes } of fieldsOf(message)) {
    if (field === fields.typeUrl) typeUrl = textOf(bytes);
    else if (field === fields.nonce) nonce = textOf(bytes);
    else if (field === fields.rejection) rejection = (textIn(bytes, 2) ?? '').slice(0, mostRefusal);
  }
  return { typeUrl, nonce, rejection };
}

/** Names of resources in a request: all that are requested (state of the world), and those that are not requested any more (delta). */
export function namesIn(
  message: Uint8Array,
  protocol: Protocol,
): { readonly names: ReadonlySet<string> | undefined; readonly removed: readonly string[] } {
  const named = (wanted: number): string[] =>
    [...fieldsOf(message)].filter(({ field }) => field === wanted).map(({ bytes }) => textOf(bytes));
  return protocol === 'sotw' ? { names: new Set(named(3)), removed: [] } : { names: undefined, removed: named(4) };
}

/**
 * The type of a request of which only the beginning is there. Undefined where it comes later: after many names, which listeners
 * are not asked for by.
 */
export function typeOfRequestBeginning(message: Uint8Array, protocol: Protocol): string | undefined {
  const type = beginningOfField(message, headFields[protocol].typeUrl);
  return type && textOf(type);
}

/** A response's fields for its type and its nonce, in both protocols. */
export const responseFields = { typeUrl: 4, nonce: 5 } as const;

/** The type of a response; undefined when it names none. Throws when the bytes are no message. */
export function typeOfResponse(message: Uint8Array): string | undefined {
  return textIn(message, responseFields.typeUrl);
}

/**
 * The type of a response of which only the beginning is there, by its first resource: the response's own type comes after all of
 * them. Undefined: the beginning does not tell.
 */
export function typeOfBeginning(message: Uint8Array, protocol: Protocol): string | undefined {
  const resource = beginningOfField(message, 2);
  const any = protocol === 'sotw' || resource === undefined ? resource : beginningOfField(resource, 2);
  const type = any && beginningOfField(any, 1);
  return type && textOf(type);
}

/** The first such field, or as much of it as is there. */
function beginningOfField(bytes: Uint8Array, wanted: number): Uint8Array | undefined {
  const reader = new BinaryReader(bytes);
  try {
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag();
      if (field !== wanted || wireType !== WireType.LengthDelimited) {
        reader.skip(wireType, field);
        continue;
      }
      const length = reader.uint32();
      return bytes.subarray(reader.pos, reader.pos + length);
    }
  } catch {
    // The beginning ends within a field that is not wanted.
  }
  return undefined;
}

export interface InternalResponse {
  readonly version: string;
  readonly nonce: string;
  /** The first resource, without its envelope; undefined: there is none. */
  readonly value: Uint8Array | undefined;
}

/** A response to a subscription of the agent's own. Throws when the bytes are no message. */
export function readInternal(message: Uint8Array, protocol: Protocol): InternalResponse {
  let [version, nonce] = ['', ''];
  let first: Uint8Array | undefined;
  for (const { field, bytes } of fieldsOf(message)) {
    if (field === 1) version = textOf(bytes);
    else if (field === 2) first ??= bytes;
    else if (field === 5) nonce = textOf(bytes);
  }
  const any = protocol === 'sotw' || first === undefined ? first : fieldIn(first, 2);
  const value = any === undefined ? undefined : (fieldIn(any, 2) ?? new Uint8Array());
  return { version, nonce, value };
}

/** `caCertificatesPem` of an istio.mesh.v1alpha1.ProxyConfig. */
const rootsField = 34;

/** The PEM texts of the roots that a proxy configuration names. Throws when the bytes are no message. */
export function rootsIn(proxyConfig: Uint8Array): string[] {
  return [...fieldsOf(proxyConfig)].filter(({ field }) => field === rootsField).map(({ bytes }) => textOf(bytes));
}

/** `proxyMetadata` of the same. */
const metadataField = 24;
const taintedKey = 'TAINTED_ROOTS';

/** Hashes of the roots of which a workload is to have no certificate any more. Throws when the bytes are no message. */
export function taintedIn(proxyConfig: Uint8Array): string[] {
  return [...fieldsOf(proxyConfig)]
    .filter(({ field, bytes }) => field === metadataField && textIn(bytes, 1) === taintedKey)
    .flatMap(({ bytes }) => (textIn(bytes, 2) ?? '').split(','))
    .filter((hash) => /^[0-9a-f]{64}$/.test(hash));
}

export interface InternalRequest {
  readonly typeUrl: string;
  readonly version?: string;
  readonly nonce?: string;
  /** Absent: it asks, or acknowledges. */
  readonly refusal?: string;
  /** Said of the node again, beside what Envoy has said. */
  readonly nodeMetadata?: Readonly<Record<string, string>>;
}

/** A request of the agent's own. Its node is known: Envoy said it in the stream's first one. */
export function internalRequest(
  { typeUrl, version = '', nonce = '', refusal, nodeMetadata }: InternalRequest,
  protocol: Protocol,
): Uint8Array {
  const writer = new BinaryWriter();
  const text = (field: number, value: string): void => {
    if (value !== '') writer.tag(field, WireType.LengthDelimited).string(value);
  };
  if (protocol === 'sotw') text(1, version);
  if (nodeMetadata !== undefined) {
    writer.tag(protocol === 'sotw' ? 2 : 1, WireType.LengthDelimited).bytes(nodeOf(nodeMetadata));
  }
  text(headFields[protocol].typeUrl, typeUrl);
  text(headFields[protocol].nonce, nonce);
  if (refusal !== undefined) writer.raw(rejectionOf(refusal, protocol));
  return writer.finish();
}

/** The field of a request by which it rejects the response that it names. */
export function rejectionOf(refusal: string, protocol: Protocol): Uint8Array {
  const status = new BinaryWriter().tag(1, WireType.Varint).int32(grpcCodes.INTERNAL);
  status.tag(2, WireType.LengthDelimited).string(refusal.slice(0, mostRefusal));
  return new BinaryWriter()
    .tag(headFields[protocol].rejection, WireType.LengthDelimited)
    .bytes(status.finish())
    .finish();
}

/** An envoy.config.core.v3.Node with nothing but texts in its metadata, which is a google.protobuf.Struct. */
function nodeOf(metadata: Readonly<Record<string, string>>): Uint8Array {
  const part = (field: number, bytes: Uint8Array): Uint8Array =>
    new BinaryWriter().tag(field, WireType.LengthDelimited).bytes(bytes).finish();
  const struct = new BinaryWriter();
  for (const [name, value] of Object.entries(metadata)) {
    const entry = new BinaryWriter().tag(1, WireType.LengthDelimited).string(name);
    entry.tag(2, WireType.LengthDelimited).bytes(part(3, Buffer.from(value)));
    struct.tag(1, WireType.LengthDelimited).bytes(entry.finish());
  }
  return part(3, struct.finish());
}
