/** Turns a protobuf-es message into the bytes that every stream shares. */
import { hash } from 'node:crypto';
import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { wireForm } from '../../networking/messages/wire-form.ts';
import type { EncodedResource } from './resource-source.ts';
import { encodedLength, keptBuffer, WireWriter } from './wire.ts';

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
  const value = wireForm(schema, message);
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
  const writer = new WireWriter(keptBuffer(encodedLength(2, resourceLength)));
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
