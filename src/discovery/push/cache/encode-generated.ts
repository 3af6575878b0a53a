import { hash } from 'node:crypto';
import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import type { EnvoyResource } from '../../../networking/index.ts';
import { ResourceOfParts } from '../../../networking/messages/resource.ts';
import type { EncodedResource } from '../../xds/resource-source.ts';
import { encodeValue, versionOf } from '../../xds/responses/encoding.ts';

/** Encodes a resource, whose bytes then exist only in the encoded frame and in shared blocks. */
export function encodeGenerated(resource: EnvoyResource): EncodedResource {
  const { name, schema, chunks } = resource;
  const typeUrl = `type.googleapis.com/${schema.typeName}`;
  const [bytes, ...laterChunks] = chunks;
  if (resource instanceof ResourceOfParts)
    return encodeValue(typeUrl, bytes!, name, { version: versionOfAll(chunks), tailChunks: laterChunks });
  const encodedResource = encodeValue(typeUrl, bytes!, name);
  const { deltaFrame } = encodedResource;
  resource.moveTo(deltaFrame.subarray(deltaFrame.length - bytes!.length));
  return encodedResource;
}

function versionOfAll(chunks: readonly Uint8Array[]): string {
  return versionOf(chunks.map(digestOf).join());
}

const digestOf = memoizeByObject((bytes: Uint8Array): string => hash('sha256', bytes, 'base64url'));
