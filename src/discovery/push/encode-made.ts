import type { Resource } from '../../networking/index.ts';
import { encodeValue } from '../ads/encoding.ts';
import type { EncodedResource } from '../ads/resource-source.ts';

/** Frames a generated resource. From then on its bytes lie in the frame and nowhere else. */
export function encodeMade(resource: Resource): EncodedResource {
  const { name, schema, bytes } = resource;
  const encoded = encodeValue(`type.googleapis.com/${schema.typeName}`, bytes, name);
  const { deltaFrame } = encoded;
  resource.moveTo(deltaFrame.subarray(deltaFrame.length - bytes.length));
  return encoded;
}
