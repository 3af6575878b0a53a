/** Turns a protobuf-es message into the bytes that every stream shares. */
import { hash } from 'node:crypto';
import { type DescMessage, type Message, type MessageShape, toBinary } from '@bufbuild/protobuf';
import type { EncodedResource } from './resource-source.ts';
import { encodedLength, WireWriter } from './wire.ts';

const typeUrlPrefix = 'type.googleapis.com/';
/** 96 bits: two contents of a name never meet. */
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
  const value = toBinary(schema, canonical(message) as MessageShape<Desc>);
  return encodeValue(typeUrlPrefix + schema.typeName, value, name);
}

/**
 * Frames a resource that is encoded already.
 *
 * @param version what identifies the content; a hash of it when left out.
 */
export function encodeValue(typeUrl: string, value: Uint8Array, name: string, version?: string): EncodedResource {
  const contentVersion = version ?? hash('sha256', value, 'base64url').slice(0, versionLength);
  const anyLength = encodedLength(1, typeUrl) + encodedLength(2, value);
  // DiscoveryResponse.resources and Resource.resource both have number 2, so the former is the tail of the latter:
  // one copy of the bytes serves both protocols.
  const sotwLength = encodedLength(2, anyLength);
  const resourceLength = encodedLength(3, name) + encodedLength(1, contentVersion) + sotwLength;
  const writer = new WireWriter(encodedLength(2, resourceLength));
  writer.header(2, resourceLength);
  writer.text(3, name);
  writer.text(1, contentVersion);
  const sotwStart = writer.position;
  writer.header(2, anyLength);
  writer.text(1, typeUrl);
  writer.bytes(2, value);
  const deltaFrame = writer.finish();
  return { name, version: contentVersion, sotwFrame: deltaFrame.subarray(sotwStart), deltaFrame };
}

/**
 * The message with the keys of its maps and JSON objects in order: protobuf-es writes them as they were inserted. What
 * is in order already is not copied.
 */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return canonicalList(value);
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  const source = value as Record<string, unknown>;
  const keys = Object.keys(source);
  // The fields of a message are written in the order of its descriptor.
  const inOrder = isMessage(source) || keys.every((key, i) => i === 0 || keys[i - 1]! < key);
  let copy: Record<string, unknown> | undefined = inOrder ? undefined : {};
  for (const key of inOrder ? keys : keys.sort()) {
    const entry = canonical(source[key]);
    if (copy === undefined && entry !== source[key])
      copy = Object.assign(Object.create(Object.getPrototypeOf(source)), source);
    if (copy !== undefined) copy[key] = entry;
  }
  return copy ?? source;
}

function canonicalList(list: unknown[]): unknown[] {
  let copy: unknown[] | undefined;
  list.forEach((item, i) => {
    const entry = canonical(item);
    if (entry === item) return;
    copy ??= [...list];
    copy[i] = entry;
  });
  return copy ?? list;
}

function isMessage(value: Record<string, unknown>): value is Record<string, unknown> & Message {
  return typeof value.$typeName === 'string';
}
