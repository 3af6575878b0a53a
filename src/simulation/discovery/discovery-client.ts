/** A simulated sidecar requests all clusters, their endpoints, and one route. */
import type { AdsRequest } from '../../../machines/discovery/xds/ads-protocol.ts';
import { clusterType, endpointType, isByName, routeType } from '../../../machines/discovery/xds/ads-types.ts';
import type { MeshType, Resources } from './discovery-mesh.ts';
import type { WireResponse } from './discovery-stream.ts';

export interface ClientState {
  readonly isDelta: boolean;
  readonly types: readonly MeshType[];
  readonly connection: number | undefined;
  /** A stalled client may never read again. */
  readonly isStalled: boolean;
  /** The client has read these responses, but neither acknowledged nor rejected them. */
  readonly unacknowledgedResponses: readonly WireResponse[];
  readonly resources: Readonly<Record<string, Resources>>;
  /** Includes only endpoints requested on this stream. */
  readonly requestedEndpoints: readonly string[];
  /** Nonces of the last response of each type on this stream. */
  readonly nonces: Readonly<Record<string, string>>;
  /** `type name=content` of rejected resources; `=gone` for removals. */
  readonly rejectedContents: readonly string[];
}

export interface ClientStep {
  readonly client: ClientState;
  readonly requests: readonly AdsRequest[];
}

export function newClient(isDelta: boolean, types: readonly MeshType[]): ClientState {
  const initialState = {
    unacknowledgedResponses: [],
    resources: {},
    requestedEndpoints: [],
    nonces: {},
    rejectedContents: [],
  };
  return { isDelta, types, connection: undefined, isStalled: false, ...initialState };
}

/** The client keeps its resources. */
export function connectClient(client: ClientState, connection: number): ClientStep {
  const endpoints = Object.keys(client.resources[clusterType] ?? {});
  const nextClient: ClientState = {
    ...client,
    connection,
    unacknowledgedResponses: [],
    nonces: {},
    requestedEndpoints: endpoints,
  };
  const subscriptions: Partial<Record<MeshType, readonly string[]>> = {
    [clusterType]: [],
    ...(endpoints.length > 0 && { [endpointType]: endpoints }),
    [routeType]: ['r'],
  };
  const requests = client.types.flatMap((type) => {
    const names = subscriptions[type];
    if (names === undefined) return [];
    return [
      client.isDelta
        ? deltaRequest(type, { subscribe: names, initialResources: client.resources[type] ?? {} })
        : sotwRequest(type, '', names),
    ];
  });
  return { client: nextClient, requests };
}

export function disconnectClient(client: ClientState): ClientState {
  return {
    ...client,
    connection: undefined,
    isStalled: false,
    unacknowledgedResponses: [],
    nonces: {},
    requestedEndpoints: [],
  };
}

/** Also requests missing resources. */
export function acceptResponse(client: ClientState): ClientStep {
  const [response, ...laterResponses] = client.unacknowledgedResponses as [WireResponse, ...WireResponse[]];
  const { typeUrl, nonce } = response;
  const previousResources = client.resources[typeUrl] ?? {};
  const isFullState = !client.isDelta && !isByName(typeUrl);
  const mergedResources: Record<string, number> = isFullState
    ? { ...response.resources }
    : { ...previousResources, ...response.resources };
  for (const name of response.removedNames) delete mergedResources[name];
  const nextClient: ClientState = {
    ...client,
    unacknowledgedResponses: laterResponses,
    resources: { ...client.resources, [typeUrl]: mergedResources },
    nonces: { ...client.nonces, [typeUrl]: nonce },
  };
  const acknowledgement = client.isDelta
    ? deltaRequest(typeUrl, { nonce })
    : sotwRequest(typeUrl, nonce, namesOf(nextClient, typeUrl));
  if (typeUrl !== clusterType || !client.types.includes(endpointType)) {
    return { client: nextClient, requests: [acknowledgement] };
  }
  const requested = subscribeEndpoints(nextClient);
  return { client: requested.client, requests: [acknowledgement, ...requested.requests] };
}

export function rejectResponse(client: ClientState): ClientStep {
  const [{ typeUrl, nonce, resources, removedNames }, ...laterResponses] = client.unacknowledgedResponses as [
    WireResponse,
    ...WireResponse[],
  ];
  const isFullState = !client.isDelta && !isByName(typeUrl);
  const replacedNames = isFullState
    ? Object.keys(client.resources[typeUrl] ?? {}).filter((name) => !(name in resources))
    : [];
  const contents = Object.entries(resources).map(([name, content]) => `${typeUrl} ${name}=${content}`);
  const removals = [...removedNames, ...replacedNames].map((name) => `${typeUrl} ${name}=gone`);
  const nextClient: ClientState = {
    ...client,
    unacknowledgedResponses: laterResponses,
    nonces: { ...client.nonces, [typeUrl]: nonce },
    rejectedContents: [...new Set([...client.rejectedContents, ...contents, ...removals])].sort(),
  };
  const request = client.isDelta
    ? deltaRequest(typeUrl, { nonce, rejection: 'no' })
    : { ...sotwRequest(typeUrl, nonce, namesOf(nextClient, typeUrl)), rejection: 'no' };
  return { client: nextClient, requests: [request] };
}

export function sendStaleRequest(client: ClientState): ClientStep {
  const request = client.isDelta
    ? deltaRequest(clusterType, { nonce: 'stale' })
    : sotwRequest(clusterType, 'stale', []);
  return { client, requests: [request] };
}

function subscribeEndpoints(client: ClientState): ClientStep {
  const clusters = Object.keys(client.resources[clusterType]!);
  const addedNames = clusters.filter((name) => !client.requestedEndpoints.includes(name));
  const droppedNames = client.requestedEndpoints.filter((name) => !clusters.includes(name));
  if (addedNames.length + droppedNames.length === 0) return { client, requests: [] };
  const keptEndpoints = Object.entries(client.resources[endpointType] ?? {}).filter(([name]) =>
    clusters.includes(name),
  );
  const nextClient: ClientState = {
    ...client,
    requestedEndpoints: clusters,
    resources: { ...client.resources, [endpointType]: Object.fromEntries(keptEndpoints) },
  };
  const request = client.isDelta
    ? deltaRequest(endpointType, { subscribe: addedNames, unsubscribe: droppedNames })
    : sotwRequest(endpointType, client.nonces[endpointType] ?? '', clusters);
  return { client: nextClient, requests: [request] };
}

function namesOf(client: ClientState, typeUrl: string): readonly string[] {
  if (typeUrl === endpointType) return client.requestedEndpoints;
  return typeUrl === routeType ? ['r'] : [];
}

function sotwRequest(typeUrl: string, nonce: string, names: readonly string[]): AdsRequest {
  return { protocol: 'sotw', typeUrl, nonce, names, rejection: null };
}

function deltaRequest(
  typeUrl: string,
  fields: {
    nonce?: string;
    subscribe?: readonly string[];
    unsubscribe?: readonly string[];
    initialResources?: Resources;
    rejection?: string;
  },
): AdsRequest {
  const { nonce = '', subscribe = [], unsubscribe = [], initialResources: has = {}, rejection = null } = fields;
  const [initialNames, initialVersions] = [Object.keys(has), Object.values(has).map(String)];
  return {
    protocol: 'delta',
    typeUrl,
    nonce,
    subscribe,
    unsubscribe,
    known: initialNames,
    knownVersions: initialVersions,
    rejection,
  };
}
