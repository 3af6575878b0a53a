/**
 * Discovery messages on the wire, as far as an agent that passes them on has to know them: whose they are, and those of its own
 * subscriptions. Both protocols have a response's type in field 4 and its nonce in field 5.
 */
import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire';

export type Protocol = 'sotw' | 'delta';

export const methods: Readonly<Record<Protocol, string>> = {
  sotw: '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
  delta: '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
};

/** What Envoy may be sent. */
export const envoyTypes = 'type.googleapis.com/envoy.';

/** Length-delimited: the only wire type of what is read here. */
const lengthDelimited = 2;
const typeField = { sotw: 4, delta: 2 } as const;

/** The type that a request is about; undefined when it names none. Throws when the bytes are no message. */
export function typeOfRequest(message: Uint8Array, protocol: Protocol): string | undefined {
  return textIn(message, typeField[protocol]);
}

/**
 * As {@link typeOfRequest}, of a request of which only the beginning is there. Undefined where the type comes later: after many
 * names, which listeners are not asked for by.
 */
export function typeOfRequestBeginning(message: Uint8Array, protocol: Protocol): string | undefined {
  const type = beginningOfField(message, typeField[protocol]);
  return type && Buffer.from(type).toString();
}

/** The type of a response; undefined when it names none. Throws when the bytes are no message. */
export function typeOfResponse(message: Uint8Array): string | undefined {
  return textIn(message, 4);
}

/** The last one counts, as in any protobuf message. */
function textIn(message: Uint8Array, wanted: number): string | undefined {
  let text: string | undefined;
  for (const { field, bytes } of fieldsOf(message)) if (field === wanted) text = Buffer.from(bytes).toString();
  return text;
}

interface Field {
  readonly field: number;
  readonly bytes: Uint8Array;
}

function* fieldsOf(message: Uint8Array): Generator<Field> {
  const reader = new BinaryReader(message);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (wireType === lengthDelimited) yield { field, bytes: reader.bytes() };
    else reader.skip(wireType, field);
  }
}

/**
 * The type of a response of which only the beginning is there, by its first resource: the response's own type comes after all of
 * them. Undefined: the beginning does not tell.
 */
export function typeOfBeginning(message: Uint8Array, protocol: Protocol): string | undefined {
  const resource = beginningOfField(message, 2);
  const any = protocol === 'sotw' || resource === undefined ? resource : beginningOfField(resource, 2);
  const type = any && beginningOfField(any, 1);
  return type && Buffer.from(type).toString();
}

/** The first such field, or as much of it as is there. */
function beginningOfField(bytes: Uint8Array, wanted: number): Uint8Array | undefined {
  const reader = new BinaryReader(bytes);
  try {
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag();
      if (field !== wanted || wireType !== lengthDelimited) {
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
  /** Of the first resource, without its envelope; undefined: there is none. */
  readonly value: Uint8Array | undefined;
}

/** A response to a subscription of the agent's own. Throws when the bytes are no message. */
export function readInternal(message: Uint8Array, protocol: Protocol): InternalResponse {
  let [version, nonce] = ['', ''];
  let first: Uint8Array | undefined;
  for (const { field, bytes } of fieldsOf(message)) {
    if (field === 1) version = Buffer.from(bytes).toString();
    else if (field === 2) first ??= bytes;
    else if (field === 5) nonce = Buffer.from(bytes).toString();
  }
  const any = protocol === 'sotw' || first === undefined ? first : fieldIn(first, 2);
  const value = any === undefined ? undefined : (fieldIn(any, 2) ?? new Uint8Array());
  return { version, nonce, value };
}

function fieldIn(message: Uint8Array, wanted: number): Uint8Array | undefined {
  for (const { field, bytes } of fieldsOf(message)) if (field === wanted) return bytes;
  return undefined;
}

/** `caCertificatesPem` of an istio.mesh.v1alpha1.ProxyConfig. */
const rootsField = 34;

/** The PEM texts of the roots that a proxy configuration names. Throws when the bytes are no message. */
export function rootsIn(proxyConfig: Uint8Array): string[] {
  return [...fieldsOf(proxyConfig)]
    .filter(({ field }) => field === rootsField)
    .map(({ bytes }) => Buffer.from(bytes).toString());
}

export interface InternalRequest {
  readonly typeUrl: string;
  readonly version?: string;
  readonly nonce?: string;
  /** Absent: it asks, or acknowledges. */
  readonly refusal?: string;
}

/** gRPC's INTERNAL. */
const internalCode = 13;
const mostRefusal = 1_000;

/** A request of the agent's own. Its node is known: Envoy said it in the stream's first one. */
export function internalRequest(
  { typeUrl, version = '', nonce = '', refusal }: InternalRequest,
  protocol: Protocol,
): Uint8Array {
  const writer = new BinaryWriter();
  const text = (field: number, value: string): void => {
    if (value !== '') writer.tag(field, lengthDelimited).string(value);
  };
  if (protocol === 'sotw') text(1, version);
  text(typeField[protocol], typeUrl);
  text(protocol === 'sotw' ? 5 : 6, nonce);
  if (refusal !== undefined) {
    const status = new BinaryWriter().tag(1, 0).int32(internalCode);
    status.tag(2, lengthDelimited).string(refusal.slice(0, mostRefusal));
    writer.tag(protocol === 'sotw' ? 6 : 7, lengthDelimited).bytes(status.finish());
  }
  return writer.finish();
}
