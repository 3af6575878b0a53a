/** In both protocols, a response has its type in field 4 and its nonce in field 5. */
import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { grpcCodes } from '../../runtime/grpc/call-status.ts';
import { fieldsOf, findField, textIn, textOf } from '../../runtime/grpc/message-fields.ts';

export type DiscoveryProtocol = 'sotw' | 'delta';

export const methods: Readonly<Record<DiscoveryProtocol, string>> = {
  sotw: '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
  delta: '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
};

/** Types with this prefix are forwarded to Envoy. */
export const envoyTypes = 'type.googleapis.com/envoy.';

const maxReasonCharacters = 1_000;

export interface RequestHead {
  readonly typeUrl: string;
  /** Nonce of the acknowledged or rejected response. */
  readonly nonce: string;
  readonly rejection: string | undefined;
}

const headFields = {
  sotw: { typeUrl: 4, nonce: 5, rejection: 6 },
  delta: { typeUrl: 2, nonce: 6, rejection: 7 },
} as const;

/** Throws if the bytes are not a valid message. */
export function readRequest(message: Uint8Array, protocol: DiscoveryProtocol): RequestHead {
  const fields = headFields[protocol];
  let [typeUrl, nonce] = ['', ''];
  let rejection: string | undefined;
  for (const { field, bytes } of fieldsOf(message)) {
    if (field === fields.typeUrl) typeUrl = textOf(bytes);
    else if (field === fields.nonce) nonce = textOf(bytes);
    else if (field === fields.rejection) rejection = (textIn(bytes, 2) ?? '').slice(0, maxReasonCharacters);
  }
  return { typeUrl, nonce, rejection };
}

/** Returns the subscribed names in the state-of-the-world protocol, the unsubscribed names in the delta protocol. */
export function readSubscriptionNames(
  message: Uint8Array,
  protocol: DiscoveryProtocol,
): { readonly names: ReadonlySet<string> | undefined; readonly removed: readonly string[] } {
  const namesInField = (fieldNumber: number): string[] =>
    [...fieldsOf(message)].filter(({ field }) => field === fieldNumber).map(({ bytes }) => textOf(bytes));
  return protocol === 'sotw'
    ? { names: new Set(namesInField(3)), removed: [] }
    : { names: undefined, removed: namesInField(4) };
}

/** `undefined` if the type follows later, after a long list of names. */
export function typeInRequestStart(message: Uint8Array, protocol: DiscoveryProtocol): string | undefined {
  const type = startOfField(message, headFields[protocol].typeUrl);
  return type && textOf(type);
}

export const responseFields = { typeUrl: 4, nonce: 5 } as const;

/** Throws if the bytes are not a valid message. */
export function typeOfResponse(message: Uint8Array): string | undefined {
  return textIn(message, responseFields.typeUrl);
}

/** Returns the type of the first resource, because the response's own type follows the resources. */
export function typeInResponseStart(message: Uint8Array, protocol: DiscoveryProtocol): string | undefined {
  const resource = startOfField(message, 2);
  const anyBytes = protocol === 'sotw' || resource === undefined ? resource : startOfField(resource, 2);
  const type = anyBytes && startOfField(anyBytes, 1);
  return type && textOf(type);
}

/** The field may be cut off. */
function startOfField(bytes: Uint8Array, fieldNumber: number): Uint8Array | undefined {
  const reader = new BinaryReader(bytes);
  try {
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag();
      if (field !== fieldNumber || wireType !== WireType.LengthDelimited) {
        reader.skip(wireType, field);
        continue;
      }
      const length = reader.uint32();
      return bytes.subarray(reader.pos, reader.pos + length);
    }
  } catch {
    // The bytes end within another field.
  }
  return undefined;
}

export interface InternalResponse {
  readonly version: string;
  readonly nonce: string;
  /** Contains the resource without its envelope. */
  readonly value: Uint8Array | undefined;
}

/** Throws if the bytes are not a valid message. */
export function readInternal(message: Uint8Array, protocol: DiscoveryProtocol): InternalResponse {
  let [version, nonce] = ['', ''];
  let firstResource: Uint8Array | undefined;
  for (const { field, bytes } of fieldsOf(message)) {
    if (field === 1) version = textOf(bytes);
    else if (field === 2) firstResource ??= bytes;
    else if (field === 5) nonce = textOf(bytes);
  }
  const anyBytes = protocol === 'sotw' || firstResource === undefined ? firstResource : findField(firstResource, 2);
  const value = anyBytes === undefined ? undefined : (findField(anyBytes, 2) ?? new Uint8Array());
  return { version, nonce, value };
}

/** `caCertificatesPem` of istio.mesh.v1alpha1.ProxyConfig. */
const rootsField = 34;

/** Throws if the bytes are not a valid message. */
export function rootsIn(proxyConfig: Uint8Array): string[] {
  return [...fieldsOf(proxyConfig)].filter(({ field }) => field === rootsField).map(({ bytes }) => textOf(bytes));
}

/** `proxyMetadata` of istio.mesh.v1alpha1.ProxyConfig. */
const metadataField = 24;
const taintedKey = 'TAINTED_ROOTS';

/** Throws if the bytes are not a valid message. */
export function readTaintedRoots(proxyConfig: Uint8Array): string[] {
  return [...fieldsOf(proxyConfig)]
    .filter(({ field, bytes }) => field === metadataField && textIn(bytes, 1) === taintedKey)
    .flatMap(({ bytes }) => (textIn(bytes, 2) ?? '').split(','))
    .filter((hash) => /^[0-9a-f]{64}$/.test(hash));
}

export interface InternalRequest {
  readonly typeUrl: string;
  readonly version?: string;
  readonly nonce?: string;
  /** Absent for a subscription or an acknowledgement. */
  readonly refusal?: string;
  readonly nodeMetadata?: Readonly<Record<string, string>>;
}

/** The request needs no node, which Envoy's first request of the stream contains. */
export function internalRequest(
  { typeUrl, version = '', nonce = '', refusal, nodeMetadata }: InternalRequest,
  protocol: DiscoveryProtocol,
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

/** Fields that turn an acknowledgement into a rejection of the response with the same nonce. */
export function rejectionOf(refusal: string, protocol: DiscoveryProtocol): Uint8Array {
  const status = new BinaryWriter().tag(1, WireType.Varint).int32(grpcCodes.INTERNAL);
  status.tag(2, WireType.LengthDelimited).string(refusal.slice(0, maxReasonCharacters));
  return new BinaryWriter()
    .tag(headFields[protocol].rejection, WireType.LengthDelimited)
    .bytes(status.finish())
    .finish();
}

/** The metadata of an envoy.config.core.v3.Node is a google.protobuf.Struct. */
function nodeOf(metadata: Readonly<Record<string, string>>): Uint8Array {
  const encodeField = (field: number, bytes: Uint8Array): Uint8Array =>
    new BinaryWriter().tag(field, WireType.LengthDelimited).bytes(bytes).finish();
  const struct = new BinaryWriter();
  for (const [name, value] of Object.entries(metadata)) {
    const entry = new BinaryWriter().tag(1, WireType.LengthDelimited).string(name);
    entry.tag(2, WireType.LengthDelimited).bytes(encodeField(3, Buffer.from(value)));
    struct.tag(1, WireType.LengthDelimited).bytes(entry.finish());
  }
  return encodeField(3, struct.finish());
}
