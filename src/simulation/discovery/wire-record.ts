import type { AdsRequest, DeltaRequest } from '../../../machines/discovery/xds/ads-protocol.ts';
import { isByName } from '../../../machines/discovery/xds/ads-types.ts';
import type { WireRecord } from './discovery-invariants.ts';
import type { Contents } from './discovery-mesh.ts';
import type { WireResponse } from './discovery-stream.ts';

export const allNames = '*';

export function recordResponse(record: WireRecord, response: WireResponse, contents: Contents): WireRecord {
  return {
    ...record,
    unacknowledgedResponses: [...record.unacknowledgedResponses, response],
    pendingRequests: record.pendingRequests.filter((name) => isOwed(name, record, response, contents)),
    isAckOverdue: false,
    lastNonce: response.nonce,
    sentVersions: withoutNames({ ...record.sentVersions, ...response.resources }, response.removedNames),
  };
}

export function recordRequest(record: WireRecord, request: AdsRequest): WireRecord {
  const { nonce, rejection } = request;
  const { unacknowledgedResponses } = record;
  const acknowledgedResponse = unacknowledgedResponses.find((response) => response.nonce === nonce);
  const isCurrent = nonce === '' || nonce === record.lastNonce;
  // The names of a state-of-the-world request count if it refers to the last response, and does not reject it (S1).
  const counts = request.protocol === 'delta' || (isCurrent && rejection === null);
  const isLast = acknowledgedResponse !== undefined && acknowledgedResponse === unacknowledgedResponses.at(-1);
  const remainingResponses = unacknowledgedResponses.filter((response) => response !== acknowledgedResponse);
  return {
    ...record,
    unacknowledgedResponses: remainingResponses,
    // Without an outstanding response the flag has no effect, and would only distinguish equal states.
    isAckOverdue: record.isAckOverdue && remainingResponses.length > 0,
    pendingRequests: union(record.pendingRequests, counts ? requestedNames(request, record.subscribedNames) : []),
    ...(counts && { subscribedNames: namesAfter(record.subscribedNames, request) }),
    ...(request.protocol === 'delta' && request.known.length > 0 && { sentVersions: knownVersionsOf(request) }),
    ...(isLast && rejection === null && { acceptedResponse: { nonce, version: acknowledgedResponse.version } }),
  };
}

function knownVersionsOf({ known, knownVersions }: DeltaRequest): Readonly<Record<string, number>> {
  return Object.fromEntries(known.map((name, i) => [name, Number(knownVersions[i])]));
}

/** Names that a request adds; `*`: all. */
function requestedNames(request: AdsRequest, subscribedNames: string): readonly string[] {
  const names = request.protocol === 'delta' ? request.subscribe : request.names;
  if (names.length === 0) return request.nonce === '' && !isByName(request.typeUrl) ? [allNames] : [];
  if (request.protocol === 'delta' || request.nonce === '') return names;
  const previousNames = subscribedNames.split(',');
  return names.filter((name) => !previousNames.includes(name));
}

/** Whether a name was requested and is still unsent after this response. */
function isOwed(name: string, record: WireRecord, { typeUrl, resources }: WireResponse, contents: Contents): boolean {
  const content = contents[typeUrl][name];
  if (name === allNames || name in resources || content === undefined) return false;
  // Resources that the client has from an earlier stream are not sent again.
  return record.lastNonce !== '' || record.sentVersions[name] !== content;
}

function namesAfter(subscribedNames: string, request: AdsRequest): string {
  if (request.protocol === 'sotw') return request.names.toSorted().join();
  const previousNames = subscribedNames === '' ? [] : subscribedNames.split(',');
  return union(previousNames, request.subscribe)
    .filter((name) => !request.unsubscribe.includes(name))
    .join();
}

export function union(one: readonly string[], other: readonly string[]): string[] {
  return [...new Set([...one, ...other])].sort();
}

function withoutNames(resources: Readonly<Record<string, number>>, names: readonly string[]): Record<string, number> {
  const remainingResources = { ...resources };
  for (const name of names) delete remainingResources[name];
  return remainingResources;
}
