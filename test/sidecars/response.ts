/** The fields of a DiscoveryResponse or DeltaDiscoveryResponse that a client needs. Resources are not parsed. */
import { ProtobufFields } from './protobuf-fields.ts';

export interface XdsResponse {
  readonly typeUrl: string;
  readonly version: string;
  readonly nonce: string;
  /** Adjacent records of the resources with their tags, as in the message. */
  readonly resources: Buffer;
  /** Names of removed resources; delta protocol only. */
  readonly removed: readonly string[];
}

/** Both messages have these field numbers. */
const fieldOf = { version: 1, resource: 2, typeUrl: 4, nonce: 5 } as const;
/** In state of the world, this field is the control plane's identity. */
const removedField = 6;

/** @throws RangeError for bytes that are not a protobuf message */
export function readResponse(message: Buffer, delta: boolean): XdsResponse {
  const fields = new ProtobufFields(message);
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
        // No known server writes other fields between the resources, but a server may.
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
