/**
 * Executes orders like src/discovery/xds/stream/ads-stream.ts and ads-sent.ts. While a client has `window` unread responses, no response is built;
 * while a response waits, nothing is read from the client.
 */
import { type Exchange, newExchange } from '../../../machines/discovery/xds/ads-exchange.ts';
import type { AdsRequest, ResponseOrder, StreamEnd } from '../../../machines/discovery/xds/ads-protocol.ts';
import { clusterType, endpointType, isByName } from '../../../machines/discovery/xds/ads-types.ts';
import type { Contents, MeshType, Resources } from './discovery-mesh.ts';

export interface WireResponse {
  readonly typeUrl: MeshType;
  readonly nonce: string;
  readonly version: string;
  readonly resources: Resources;
  readonly removedNames: readonly string[];
}

export interface WaitingOrder {
  readonly order: ResponseOrder;
  readonly context: number;
}

export interface StreamState {
  readonly connection: number;
  readonly client: number;
  readonly isDelta: boolean;
  readonly exchange: Exchange;
  /** Each order has the context that was current at its time. */
  readonly orders: readonly WaitingOrder[];
  readonly network: readonly WireResponse[];
  /** An order waits until earlier responses have been read. */
  readonly isCongested: boolean;
  /** The client sent these requests while congested. */
  readonly heldRequests: readonly AdsRequest[];
  /** Why the connection has ended the stream; `undefined` while it is open. */
  readonly end: StreamEnd | undefined;
  readonly sentResources: Readonly<Record<string, Resources>>;
  /** Endpoints that must be sent again, because their clusters were sent after them. */
  readonly endpointsToResend: readonly string[];
  readonly responses: number;
  /** The node is served from the context with this number. */
  readonly context: number;
}

export function newStream(connection: number, client: number, delta: boolean, context: number): StreamState {
  return {
    connection,
    client,
    isDelta: delta,
    exchange: newExchange,
    orders: [],
    network: [],
    isCongested: false,
    heldRequests: [],
    end: undefined,
    sentResources: {},
    endpointsToResend: [],
    responses: 0,
    context,
  };
}

export function executeOrder(
  stream: StreamState,
  { order, context }: WaitingOrder,
  contents: Contents,
): { stream: StreamState; response: WireResponse | undefined } {
  const typeUrl = order.typeUrl as MeshType;
  const contentsOfType = contents[typeUrl];
  const currentResources = order.names === '*' ? contentsOfType : pickResources(contentsOfType, order.names);
  const previousResources = stream.sentResources[typeUrl] ?? {};
  const names = namesToSend(stream, order, previousResources, currentResources);
  const missingNames = [...order.requested, ...Object.keys(previousResources), ...(order.has?.names ?? [])].filter(
    (name) => currentResources[name] === undefined,
  );
  const removedNames =
    stream.isDelta && (order.all || order.changed || order.requested.length > 0)
      ? [...new Set(missingNames)].sort()
      : [];
  const isResponse = order.all || order.requested.length > 0;
  const isWholeChanged = !stream.isDelta && !isByName(typeUrl) && missingNames.length > 0;
  const nextResources =
    order.all || order.changed
      ? currentResources
      : { ...previousResources, ...pickResources(currentResources, order.requested) };
  const nextStream: StreamState = { ...stream, sentResources: { ...stream.sentResources, [typeUrl]: nextResources } };
  if (!isResponse && names.length === 0 && removedNames.length === 0 && !isWholeChanged) {
    return { stream: nextStream, response: undefined };
  }
  const isFullState = !stream.isDelta && !isByName(typeUrl);
  const resources = isFullState ? currentResources : pickResources(currentResources, names);
  const responseCount = stream.responses + 1;
  const nonce = `n${stream.connection}.${responseCount};`;
  const response: WireResponse = { typeUrl, nonce, version: `${context}`, resources, removedNames };
  return {
    stream: withoutForgottenResources({ ...nextStream, responses: responseCount }, typeUrl, order, names),
    response,
  };
}

function namesToSend(
  { endpointsToResend }: StreamState,
  order: ResponseOrder,
  previousResources: Resources,
  currentResources: Resources,
): readonly string[] {
  if (order.all)
    return Object.keys(currentResources).filter(
      (name) => endpointsToResend.includes(name) || !hasAlready(order, name, currentResources),
    );
  const changedNames = Object.keys(currentResources).filter(
    (name) => previousResources[name] !== currentResources[name],
  );
  const resentNames = order.typeUrl === endpointType ? endpointsToResend : [];
  const dueNames = order.changed ? [...changedNames, ...resentNames] : [];
  return [...new Set([...order.requested, ...dueNames])].filter((name) => currentResources[name] !== undefined);
}

/** Whether a reconnecting client has reported the current version of this resource. */
function hasAlready({ has }: ResponseOrder, name: string, currentResources: Resources): boolean {
  return has?.versions[has.names.indexOf(name)] === String(currentResources[name]);
}

/** The client forgets the endpoints of sent clusters, so they must be sent again. */
function withoutForgottenResources(
  stream: StreamState,
  typeUrl: string,
  { all, changed }: ResponseOrder,
  names: readonly string[],
): StreamState {
  if (typeUrl === clusterType)
    return { ...stream, endpointsToResend: [...new Set([...stream.endpointsToResend, ...names])].sort() };
  if (typeUrl !== endpointType) return stream;
  return {
    ...stream,
    endpointsToResend: all || changed ? [] : stream.endpointsToResend.filter((name) => !names.includes(name)),
  };
}

function pickResources(resources: Resources, names: readonly string[]): Resources {
  return Object.fromEntries(names.flatMap((name) => (name in resources ? [[name, resources[name]!]] : [])));
}
