import { hash } from 'node:crypto';
import { onceFor } from '../../../model/collections/once-for.ts';
import type { Resource } from '../../../networking/index.ts';
import { ResourceOfParts } from '../../../networking/messages/resource.ts';
import type { EncodedResource } from '../../xds/resource-source.ts';
import { encodeValue, versionOf } from '../../xds/responses/encoding.ts';

/** Frames a generated resource. From then on its bytes lie in the frame and nowhere else, but for blocks that it shares. */
export function encodeMade(resource: Resource): EncodedResource {
  const { name, schema, chunks } = resource;
  const typeUrl = `type.googleapis.com/${schema.typeName}`;
  const [bytes, ...rest] = chunks;
  if (resource instanceof ResourceOfParts)
    return encodeValue(typeUrl, bytes!, name, { version: versionOfAll(chunks), rest });
  const encoded = encodeValue(typeUrl, bytes!, name);
  const { deltaFrame } = encoded;
  resource.moveTo(deltaFrame.subarray(deltaFrame.length - bytes!.length));
  return encoded;
}

/** Blocks are looked through once, however many resources they are in. */
function versionOfAll(chunks: readonly Uint8Array[]): string {
  return versionOf(chunks.map(digestOf).join());
}

const digestOf = onceFor((bytes: Uint8Array): string => hash('sha256', bytes, 'base64url'));
