/**
 * Each invariant is checked against the messages on the wire, the source's contents and the orders to the server, never against a machine's state
 * (except for the versions that it reports as acknowledged).
 */
import type { StreamEnd } from '../../../machines/discovery/xds/ads-protocol.ts';
import { clusterType, endpointType } from '../../../machines/discovery/xds/ads-types.ts';
import type { ClientState } from './discovery-client.ts';
import { type Contents, type MeshType, meshTypes } from './discovery-mesh.ts';
import type { StreamState, WireResponse } from './discovery-stream.ts';

/** Messages of one type, as observed on the wire. */
export interface WireRecord {
  readonly unacknowledgedResponses: readonly WireResponse[];
  /** `*` stands for all names. Requested names are sent even if other responses are pending. */
  readonly pendingRequests: readonly string[];
  /** The ackTimeout has elapsed, so the server no longer waits for the ACK. */
  readonly isAckOverdue: boolean;
  readonly lastNonce: string;
  /** The client's last valid request determines the names. */
  readonly subscribedNames: string;
  /** Later contents replace earlier ones. */
  readonly sentVersions: Readonly<Record<string, number>>;
  /** The last response that the client accepted while none was on its way. */
  readonly acceptedResponse: { readonly nonce: string; readonly version: string };
}

export const noWire: WireRecord = {
  unacknowledgedResponses: [],
  pendingRequests: [],
  isAckOverdue: false,
  lastNonce: '',
  subscribedNames: '',
  sentVersions: {},
  acceptedResponse: { nonce: '', version: '' },
};

export type Wire = Readonly<Partial<Record<string, WireRecord>>>;

export interface PushObservation {
  readonly clients: readonly ClientState[];
  readonly streams: ReadonlyMap<number, StreamState>;
  readonly wires: ReadonlyMap<number, Wire>;
  readonly publishedContents: Contents;
  /** The first lists of all registries are complete, or the wait for them has timed out. */
  readonly mayServe: boolean;
  /** By connection: keys that were pushed while the client was connected, and were not served yet. */
  readonly unservedKeys: ReadonlyMap<number, readonly string[]>;
  /** The server was ordered to serve these open connections, but has not reported them yet. */
  readonly connectionsBeingServed: readonly number[];
  readonly throttle: number;
  /** Maximum unread responses per client; 0: unlimited. */
  readonly window: number;
  lastAcknowledged(connection: number, type: MeshType): { readonly nonce: string; readonly version: string };
  readonly failures: readonly string[];
}

export interface PushInvariant {
  readonly name: string;
  /** Called before the response is sent. `wire` is the record before. */
  onSend?(response: WireResponse, wire: Wire, contents: Contents, observed: PushObservation): string | undefined;
  /** Called when all actors are idle. */
  afterChoice?(observed: PushObservation): string | undefined;
  /** Runs when no spontaneous event remains. */
  whenIdle?(observed: PushObservation): string | undefined;
  /** Clients that do not read may still have events. */
  whenIdleExceptStalled?(observed: PushObservation): string | undefined;
  onStreamEnd?(client: ClientState, end: StreamEnd, stream: StreamState): string | undefined;
}

/**
 * A pushed response waits until the client has acknowledged or rejected the previous one of its type, unless the client was silent for the server's
 * ackTimeout.
 */
export const oneOutstanding: PushInvariant = {
  name: 'one response of a type is outstanding on a stream',
  onSend({ typeUrl, nonce }, wire) {
    const { unacknowledgedResponses, pendingRequests, isAckOverdue } = wire[typeUrl] ?? noWire;
    if (unacknowledgedResponses.length === 0 || pendingRequests.length > 0 || isAckOverdue) return undefined;
    return `${nonce} follows ${unacknowledgedResponses.at(-1)!.nonce}, which the client has not acknowledged`;
  },
};

export const acknowledgedWasSent: PushInvariant = {
  name: 'a version reported as acknowledged was sent on that stream and accepted',
  afterChoice(observation) {
    for (const { connection } of observation.streams.values()) {
      for (const type of meshTypes) {
        const claimedAck = observation.lastAcknowledged(connection, type);
        const { acceptedResponse } = observation.wires.get(connection)?.[type] ?? noWire;
        if (claimedAck.nonce !== acceptedResponse.nonce || claimedAck.version !== acceptedResponse.version)
          return `${claimedAck.nonce} (${claimedAck.version}) on ${connection}; the client accepted ${acceptedResponse.nonce} (${acceptedResponse.version})`;
      }
    }
    return undefined;
  },
};

/** Make before break: resources that a pushed response refers to, in the same context, were sent on the stream before. */
export const clustersFirst: PushInvariant = {
  name: 'clusters are sent before the endpoints and routes of their context',
  onSend({ typeUrl }, wire, contents) {
    if (wire[typeUrl]?.pendingRequests.length !== 0) return undefined;
    for (const earlierType of meshTypes.slice(0, meshTypes.indexOf(typeUrl))) {
      const sentResources = wire[earlierType]?.sentVersions;
      if (sentResources === undefined) continue;
      // Unsubscribed endpoints are not sent; those requested just now are sent as a response, not as a push.
      const { subscribedNames, pendingRequests } = wire[earlierType]!;
      const names =
        earlierType === clusterType
          ? Object.keys(contents[earlierType])
          : subscribedNames.split(',').filter((name) => !pendingRequests.includes(name));
      for (const name of names) {
        const content = contents[earlierType][name];
        // Resources sent again may belong to an earlier context than the client's clusters.
        if (content !== undefined && (sentResources[name] === undefined || sentResources[name] < content))
          return `${shortName(typeUrl)} before ${shortName(earlierType)} ${name}`;
      }
    }
    return undefined;
  },
};

/** Rejected contents do not count. */
export const everyoneConverges: PushInvariant = {
  name: 'every client converges',
  whenIdle({ clients, publishedContents }) {
    for (const [index, client] of clients.entries()) {
      const missingText = missingResourcesOf(client, index, publishedContents);
      if (missingText !== undefined) return missingText;
    }
    return undefined;
  },
};

/** Whatever a client leaves unread, the next client in the queue gets a slot and its responses. */
export const stalledDelaysNoClient: PushInvariant = {
  name: 'a client that does not read does not delay other clients',
  whenIdleExceptStalled({ clients, publishedContents }) {
    for (const [index, client] of clients.entries()) {
      const missingText = client.isStalled ? undefined : missingResourcesOf(client, index, publishedContents);
      if (missingText !== undefined) return missingText;
    }
    return undefined;
  },
};

/** The server closes only streams of clients that do not read: in this simulation it does not drain, and all clients authenticate. */
export const readersStay: PushInvariant = {
  name: 'only a stream whose client does not read is closed, with a reason',
  onStreamEnd({ isStalled }, { code, reason }, { orders }) {
    if (isStalled && orders.length > 0 && code === 'RESOURCE_EXHAUSTED' && reason !== '') return undefined;
    return `${code} (${reason}) for a client that ${isStalled ? 'does not read' : 'reads'}; ${orders.length} pushes wait`;
  },
};

/** A proxy would treat resources missing from a first list as removed. */
export const listsFirst: PushInvariant = {
  name: 'no proxy is served before the first lists are complete',
  afterChoice({ mayServe, streams }) {
    const [first] = streams.keys();
    return mayServe || first === undefined ? undefined : `${first} is connected`;
  },
};

export const throttleHolds: PushInvariant = {
  name: 'the number of proxies served at once stays within the throttle',
  afterChoice({ connectionsBeingServed, throttle }) {
    return connectionsBeingServed.length > throttle
      ? `${connectionsBeingServed.join(', ')} with a throttle of ${throttle}`
      : undefined;
  },
};

export const everyProxyIsServed: PushInvariant = {
  name: 'every proxy with a pending push is served',
  whenIdle({ unservedKeys, streams }) {
    const [unservedConnection] = [...unservedKeys].filter(
      ([connection, keys]) => streams.has(connection) && keys.length > 0,
    );
    return unservedConnection && `${unservedConnection[0]} was not served with ${unservedConnection[1].join(', ')}`;
  },
};

/** Maximum unread responses of a stalled client that otherwise reads immediately. */
export const stalledWindow = 1;

/** A client that does not read has at most one order per type, and a limited number of pending responses. */
export const slowCostsLittle: PushInvariant = {
  name: 'a slow proxy costs bounded memory',
  afterChoice({ streams, window }) {
    for (const { connection, orders, network } of streams.values()) {
      if (new Set(orders.map(({ order }) => order.typeUrl)).size < orders.length)
        return `${orders.length} pushes wait on ${connection}: ${orders.map(({ order }) => shortName(order.typeUrl)).join(', ')}`;
      if (network.length > (window > 0 ? window : stalledWindow))
        return `${network.length} responses are in flight to ${connection}`;
    }
    return undefined;
  },
};

export const noPushChartFails: PushInvariant = {
  name: 'no chart fails',
  afterChoice: ({ failures }) => failures[0],
};

export const pushInvariants: readonly PushInvariant[] = [
  oneOutstanding,
  acknowledgedWasSent,
  clustersFirst,
  everyoneConverges,
  listsFirst,
  throttleHolds,
  everyProxyIsServed,
  slowCostsLittle,
  stalledDelaysNoClient,
  readersStay,
  noPushChartFails,
];

/** `undefined` if the client has all resources. */
function missingResourcesOf(client: ClientState, index: number, contents: Contents): string | undefined {
  if (client.connection === undefined) return `client ${index} is not connected`;
  for (const type of client.types) {
    for (const name of expectedNames(client, type, contents)) {
      const expectedContent = contents[type][name];
      const heldVersion = client.resources[type]?.[name];
      if (
        heldVersion === expectedContent ||
        client.rejectedContents.includes(`${type} ${name}=${expectedContent ?? 'gone'}`)
      )
        continue;
      return `client ${index} has ${shortName(type)} ${name}=${heldVersion ?? 'nothing'} instead of ${expectedContent ?? 'nothing'}`;
    }
  }
  return undefined;
}

/** Includes names that the client should no longer have. */
function expectedNames(client: ClientState, type: MeshType, contents: Contents): Iterable<string> {
  if (type === endpointType) return client.requestedEndpoints;
  return new Set([...Object.keys(contents[type]), ...Object.keys(client.resources[type] ?? {})]);
}

const shortName = (typeUrl: string): string => typeUrl.slice(typeUrl.lastIndexOf('.') + 1);
