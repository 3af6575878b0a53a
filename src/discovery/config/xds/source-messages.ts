import { create, toBinary } from '@bufbuild/protobuf';
import type { XdsProtocol } from '../../../../machines/discovery/config/xds-source-protocol.ts';
import {
  DeltaDiscoveryRequestSchema,
  DiscoveryRequestSchema,
} from '../../../gen/envoy/service/discovery/v3/discovery_pb.ts';
import { grpcCodes } from '../../../runtime/grpc/call-status.ts';
import { fieldsOf, findField, textIn, textOf } from '../../../runtime/grpc/message-fields.ts';
import type { StagedResource } from './source-objects.ts';

export const streamMethods: Readonly<Record<XdsProtocol, string>> = {
  sotw: '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
  delta: '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
};

export interface SourceNode {
  readonly id: string;
  readonly metadata: Readonly<Record<string, string>>;
}

export interface SourceRequest {
  /** Set only in the first request of a stream. */
  readonly node?: SourceNode;
  readonly typeUrl: string;
  readonly version?: string;
  readonly nonce?: string;
  /** Absent if the response with this nonce is accepted. */
  readonly rejection?: string;
  /** Known versions from earlier streams. Set in the first request for a type on a delta stream. */
  readonly initialVersions?: Record<string, string>;
}

const maxRejectionLength = 4_096;

export function encodeRequest(request: SourceRequest, protocol: XdsProtocol): Uint8Array {
  const { node, typeUrl, version = '', nonce = '', rejection, initialVersions = {} } = request;
  const commonFields = {
    ...(node && { node: { id: node.id, metadata: { ...node.metadata } } }),
    ...{ typeUrl, responseNonce: nonce },
    ...(rejection !== undefined && {
      errorDetail: { code: grpcCodes.INVALID_ARGUMENT, message: rejection.slice(0, maxRejectionLength) },
    }),
  };
  return protocol === 'sotw'
    ? toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { ...commonFields, versionInfo: version }))
    : toBinary(
        DeltaDiscoveryRequestSchema,
        create(DeltaDiscoveryRequestSchema, { ...commonFields, initialResourceVersions: initialVersions }),
      );
}

export interface SourceResponse {
  readonly typeUrl: string;
  readonly version: string;
  readonly nonce: string;
  /** Resources are decoded one by one, because a message can claim to contain millions. */
  readonly resources: Iterable<StagedResource>;
  /** `undefined` if the response is the complete state. */
  readonly removedNames: readonly string[] | undefined;
}

/** @throws Error if the bytes are not a response, or contain more than `maxRemovedNames` removed names */
export function decodeResponse(message: Uint8Array, protocol: XdsProtocol, maxRemovedNames: number): SourceResponse {
  let [typeUrl, version, nonce] = ['', '', ''];
  const removedNames: string[] = [];
  for (const { field, bytes } of fieldsOf(message)) {
    if (field === 1) version = textOf(bytes);
    else if (field === 4) typeUrl = textOf(bytes);
    else if (field === 5) nonce = textOf(bytes);
    else if (field === 6 && protocol === 'delta') {
      if (removedNames.length >= maxRemovedNames) throw new Error(`has more than ${maxRemovedNames} removed names`);
      removedNames.push(textOf(bytes));
    }
  }
  const resources = protocol === 'sotw' ? stateResources(message) : deltaResources(message);
  return { typeUrl, version, nonce, resources, removedNames: protocol === 'delta' ? removedNames : undefined };
}

const noBytes = new Uint8Array();

function* stateResources(message: Uint8Array): Iterable<StagedResource> {
  for (const { field, bytes } of fieldsOf(message)) {
    if (field === 2) yield { name: '', version: '', bytes: findField(bytes, 2) ?? noBytes };
  }
}

function* deltaResources(message: Uint8Array): Iterable<StagedResource> {
  for (const { field, bytes } of fieldsOf(message)) {
    if (field !== 2) continue;
    const anyBytes = findField(bytes, 2) ?? noBytes;
    yield { name: textIn(bytes, 3) ?? '', version: textIn(bytes, 1) ?? '', bytes: findField(anyBytes, 2) ?? noBytes };
  }
}
