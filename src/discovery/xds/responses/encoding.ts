/** Turns a protobuf-es message into the bytes that every stream shares. */
import { hash } from 'node:crypto';
import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import { wireForm } from '../../../networking/messages/wire-form.ts';
import type { EncodedResource } from '../resource-source.ts';
import { encodedLength, keptBuffer, WireWriter } from './wire.ts';

const typeUrlPrefix = 'type.googleapis.com/';
/** Characters of a version: enough for two contents of a name never to have the same one. */
const versionLength = 16;

/**
 * Encodes a resource once.
 *
 * Equal messages give equal bytes and so an equal version, in whatever order the keys of their maps were written.
 *
 * @param name the resource's name (`name`, or `cluster_name` of a ClusterLoadAssignment).
 */
export function encodeResource<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
  name: string,
): EncodedResource {
  const value = wireForm(schema, message);
  return encodeValue(typeUrlPrefix + schema.typeName, value, name);
}

/** What identifies a content: 96 bits of its hash. */
export function versionOf(content: string | Uint8Array): string {
  return hash('sha256', content, 'base64url').slice(0, versionLength);
}

export interface ValueOptions {
  /** What identifies the content; a hash of the value when left out. */
  readonly version?: string;
  /** The value goes on in these. */
  readonly rest?: readonly Uint8Array[];
}

/** Frames a resource that is encoded already. */
export function encodeValue(
  typeUrl: string,
  value: Uint8Array,
  name: string,
  { version = versionOf(value), rest = none }: ValueOptions = {},
): EncodedResource {
  const valueLength = rest.reduce((sum, { length }) => sum + length, value.length);
  const anyLength = encodedLength(1, typeUrl) + encodedLength(2, valueLength);
  // DiscoveryResponse.resources and Resource.resource both have number 2, so the former is the tail of the latter:
  // one copy of the bytes serves both protocols.
  const sotwLength = encodedLength(2, anyLength);
  const resourceLength = encodedLength(3, name) + encodedLength(1, version) + sotwLength;
  const writer = new WireWriter(keptBuffer(encodedLength(2, resourceLength) - (valueLength - value.length)));
  writer.header(2, resourceLength);
  writer.text(3, name);
  writer.text(1, version);
  const sotwStart = writer.position;
  writer.header(2, anyLength);
  writer.text(1, typeUrl);
  writer.header(2, valueLength);
  writer.raw(value);
  const deltaFrame = writer.finish();
  return { name, version, sotwFrame: deltaFrame.subarray(sotwStart), deltaFrame, rest };
}

const none: readonly Uint8Array[] = [];

/** Where the value of a framed resource is. */
export interface FramedValue {
  readonly typeUrl: string;
  readonly first: Uint8Array;
  /** Where it begins in `first`. */
  readonly start: number;
  readonly rest: readonly Uint8Array[];
}

/** Finds the value in a resource that {@link encodeValue} has framed. */
export function valueOf({ sotwFrame, rest }: EncodedResource): FramedValue {
  const reader = new BinaryReader(sotwFrame);
  // Field 2 of the response, field 1 of its Any, field 2 of that: their lengths may count what is in `rest`.
  reader.tag();
  reader.uint32();
  reader.tag();
  const typeUrl = reader.string();
  reader.tag();
  reader.uint32();
  return { typeUrl, first: sotwFrame, start: reader.pos, rest };
}
