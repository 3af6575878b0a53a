/** The fields of a DiscoveryResponse or DeltaDiscoveryResponse that a client needs; the resources stay bytes. */
import { Fields } from './protobuf-fields.ts';

export interface XdsResponse {
  readonly typeUrl: string;
  /** Of the whole response. */
  readonly version: string;
  readonly nonce: string;
  /** The resources' records, with their tags, as they lie in the message: all in a row. */
  readonly resources: Buffer;
  /** Names; delta only. */
  readonly removed: readonly string[];
}

/** Both messages have these under the same numbers. */
const fieldOf = { version: 1, resource: 2, typeUrl: 4, nonce: 5 } as const;
/** In state of the world, this number is the control plane's identity. */
const removedField = 6;

/** @throws RangeError when the bytes are no protobuf message */
export function readResponse(message: Buffer, delta: boolean): XdsResponse {
  const fields = new Fields(message);
  let typeUrl = '';
  let version = '';
  let nonce = '';
  let from = -1;
  let to = -1;
  let apart: Buffer[] | undefined;
  const removed: string[] = [];
  while (fields.next()) {
    if (fields.field === fieldOf.resource) {
      if (from < 0) from = fields.recordStart;
      else if (fields.recordStart !== to) {
        // No server does so, but it may: other fields between the resources.
        apart = [...(apart ?? []), message.subarray(from, to)];
        from = fields.recordStart;
      }
      to = fields.end;
    } else if (fields.field === fieldOf.typeUrl) typeUrl = fields.text();
    else if (fields.field === fieldOf.version) version = fields.text();
    else if (fields.field === fieldOf.nonce) nonce = fields.text();
    else if (delta && fields.field === removedField) removed.push(fields.text());
  }
  const last = message.subarray(Math.max(from, 0), Math.max(to, 0));
  return { typeUrl, version, nonce, removed, resources: apart === undefined ? last : Buffer.concat([...apart, last]) };
}
