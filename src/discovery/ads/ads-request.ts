/**
 * Reads discovery requests from the wire. By hand, because a client may send its whole node with each of them
 * (megabytes of metadata a second in a large mesh) and only the first one is of interest.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import type { AdsRequest, DeltaRequest, SotwRequest } from '../../../machines/discovery/ads-protocol.ts';
import { NodeSchema } from '../../gen/envoy/config/core/v3/base_pb.ts';
import type { NodeIdentity } from './resource-source.ts';

export interface ReadRequest {
  readonly request: AdsRequest;
  /** The encoded Node, where the request has one. */
  readonly node: Uint8Array | undefined;
}

/** Reads a DiscoveryRequest. Throws when the bytes are none. */
export function readSotwRequest(bytes: Uint8Array): ReadRequest {
  const request: SotwRequest = { protocol: 'sotw', typeUrl: '', nonce: '', names: [], rejection: null };
  let node: Uint8Array | undefined;
  readFields(bytes, (field, reader) => {
    if (field === 2) node = reader.bytes();
    else if (field === 3) request.names.push(reader.string());
    else if (field === 4) request.typeUrl = reader.string();
    else if (field === 5) request.nonce = reader.string();
    else if (field === 6) request.rejection = readStatusMessage(reader.bytes());
    else return false;
    return true;
  });
  return { request, node };
}

/** Reads a DeltaDiscoveryRequest. Throws when the bytes are none. */
export function readDeltaRequest(bytes: Uint8Array): ReadRequest {
  const request: DeltaRequest = {
    protocol: 'delta',
    typeUrl: '',
    nonce: '',
    subscribe: [],
    unsubscribe: [],
    known: [],
    rejection: null,
  };
  let node: Uint8Array | undefined;
  readFields(bytes, (field, reader) => {
    if (field === 1) node = reader.bytes();
    else if (field === 2) request.typeUrl = reader.string();
    else if (field === 3) request.subscribe.push(reader.string());
    else if (field === 4) request.unsubscribe.push(reader.string());
    else if (field === 5) request.known.push(readString(reader.bytes(), 1));
    else if (field === 6) request.nonce = reader.string();
    else if (field === 7) request.rejection = readStatusMessage(reader.bytes());
    else return false;
    return true;
  });
  return { request, node };
}

/** Reads an encoded Node. Throws when the bytes are none. */
export function readNode(bytes: Uint8Array): NodeIdentity {
  const { id, cluster, metadata, locality } = fromBinary(NodeSchema, bytes);
  return {
    id,
    cluster,
    metadata: metadata ?? {},
    ...(locality !== undefined && {
      locality: { region: locality.region, zone: locality.zone, subZone: locality.subZone },
    }),
  };
}

/** Calls `take` with each field; it reads the field and answers true, or leaves it alone. */
function readFields(bytes: Uint8Array, take: (field: number, reader: BinaryReader) => boolean): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    // All fields that are read are length-delimited (wire type 2).
    if (wireType !== 2 || !take(field, reader)) reader.skip(wireType, field);
  }
}

function readString(bytes: Uint8Array, wanted: number): string {
  let text = '';
  readFields(bytes, (field, reader) => {
    if (field !== wanted) return false;
    text = reader.string();
    return true;
  });
  return text;
}

/** `message` of a google.rpc.Status. */
function readStatusMessage(bytes: Uint8Array): string {
  return readString(bytes, 2);
}
