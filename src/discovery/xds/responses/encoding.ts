import { hash } from 'node:crypto';
import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import { encodeDeterministically } from '../../../networking/messages/wire-form.ts';
import type { EncodedResource } from '../resource-source.ts';
import { allocateBuffer, encodedLength, WireWriter } from './wire.ts';

const typeUrlPrefix = 'type.googleapis.com/';
/** Sufficient to distinguish all contents of a name. */
const versionLength = 16;

/**
 * Equal messages have equal bytes and so equal versions, regardless of the key order of their maps.
 *
 * @param name `name`, or `cluster_name` of a ClusterLoadAssignment
 */
export function encodeResource<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  name: string,
): EncodedResource {
  const value = encodeDeterministically(schema, message);
  return encodeValue(typeUrlPrefix + schema.typeName, value, name);
}

export function versionOf(content: string | Uint8Array): string {
  return hash('sha256', content, 'base64url').slice(0, versionLength);
}

export interface ValueOptions {
  /** The default is a hash of the value. */
  readonly version?: string;
  readonly tailChunks?: readonly Uint8Array[];
}

export function encodeValue(
  typeUrl: string,
  value: Uint8Array,
  name: string,
  { version = versionOf(value), tailChunks = noChunks }: ValueOptions = {},
): EncodedResource {
  const valueLength = tailChunks.reduce((sum, { length }) => sum + length, value.length);
  const anyMessageLength = encodedLength(1, typeUrl) + encodedLength(2, valueLength);
  // DiscoveryResponse.resources and Resource.resource both have number 2, so the SotW frame is the end of the delta frame, and one copy of the bytes
  // serves both protocols.
  const sotwLength = encodedLength(2, anyMessageLength);
  const resourceLength = encodedLength(3, name) + encodedLength(1, version) + sotwLength;
  const writer = new WireWriter(allocateBuffer(encodedLength(2, resourceLength) - (valueLength - value.length)));
  writer.header(2, resourceLength);
  writer.text(3, name);
  writer.text(1, version);
  const sotwStart = writer.position;
  writer.header(2, anyMessageLength);
  writer.text(1, typeUrl);
  writer.header(2, valueLength);
  writer.writeRaw(value);
  const deltaFrame = writer.finish();
  return { name, version, sotwFrame: deltaFrame.subarray(sotwStart), deltaFrame, tailChunks };
}

const noChunks: readonly Uint8Array[] = [];

export interface FramedValue {
  readonly typeUrl: string;
  readonly firstChunk: Uint8Array;
  readonly start: number;
  readonly tailChunks: readonly Uint8Array[];
}

/** Inverse of {@link encodeValue}. */
export function valueOf({ sotwFrame, tailChunks }: EncodedResource): FramedValue {
  const reader = new BinaryReader(sotwFrame);
  // Skips field 2 of the response, field 1 of its Any, and field 2 of the Any. Their lengths include `tailChunks`.
  reader.tag();
  reader.uint32();
  reader.tag();
  const typeUrl = reader.string();
  reader.tag();
  reader.uint32();
  return { typeUrl, firstChunk: sotwFrame, start: reader.pos, tailChunks };
}
