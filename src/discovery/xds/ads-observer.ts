/** What the ADS server tells those who count (metrics) and those who show (debug pages, status). */

import type { RetainedCluster } from '../../../machines/discovery/xds/cluster-rollout.ts';
import type { Refusal } from './admission/strangers.ts';
import type { NodeIdentity, ResponseCause } from './resource-source.ts';
import type { RolloutWait } from './rollout/rollout-waits.ts';

/** Clients that wait for a slot (chart `stream-admission`). */
export interface AdmissionView {
  readonly streams: number;
  /** Connections before their TLS handshake or HTTP/2 session. */
  readonly connections: number;
  /** Clients in each stage that may be in progress at a time. */
  readonly slots: number;
}

/** Callbacks, all optional. They must not throw and must not wait. */
export interface AdsObserver {
  /** A stream of a method, `/package.Service/Method`, was let in; refused ones are none (`grpc_server_started_total`). */
  streamOpened?(method: string): void;
  /** A stream is over, with this gRPC code's name (`grpc_server_handled_total`). */
  streamClosed?(method: string, code: string): void;
  /** A message came (`grpc_server_msg_received_total`, `pilot_xds_recv_max`). */
  requestReceived?(method: string, bytes: number): void;
  /** A response was written (`grpc_server_msg_sent_total`). */
  messageSent?(method: string): void;
  /** A client was accepted. `connections` counts the accepted ones, it included. */
  clientConnected?(node: string, connections: number): void;
  /** An accepted client is gone. */
  clientGone?(node: string, connections: number): void;
  responseSent?(typeUrl: string, response: { cause: ResponseCause; resources: number; bytes: number }): void;
  /** The last bytes of a response have left for its client, so long after they were written (`pilot_xds_send_time`). */
  responseFlushed?(typeUrl: string, ms: number): void;
  /** A response could not be written, though its client is there (`pilot_xds_pushes{type="…_senderr"}`). */
  sendFailed?(typeUrl: string, node: string, error: Error): void;
  /** A request was worked on for so long, its answers included unless they had to wait (`pilot_xds_request_time`). */
  requestTaken?(typeUrl: string, ms: number): void;
  /** What a node should have of a type was got from the source in so long (`pilot_xds_push_time`). */
  generated?(typeUrl: string, ms: number): void;
  /** A client rejected a response (NACK). */
  responseRejected?(typeUrl: string, node: string, reason: string): void;
  /** A request answered a response that is no longer the last one (`pilot_xds_expired_nonce`). */
  nonceExpired?(typeUrl: string, node: string): void;
  /** The source threw when it was asked for resources. */
  sourceFailed?(typeUrl: string, node: string, error: unknown): void;
  /** A push waited so long for a proxy's turn, milliseconds (`pilot_proxy_queue_time`). */
  queueTime?(ms: number): void;
  /** A push that concerns a proxy was taken over by it so long after it was asked for, milliseconds (`pilot_proxy_convergence_time`). */
  converged?(ms: number): void;
  /** Listeners or routes of a client begin to wait for clusters, or no longer wait (`pilot_xds_waiting_for_clusters`). */
  clustersAwaited?(isWaiting: boolean): void;
  /** A client could not use clusters within the limit (`pilot_xds_abandoned_clusters_total`). */
  clustersAbandoned?(clusters: number): void;
  /** Clusters were removed from a client before their time (`pilot_xds_evicted_clusters_total`). */
  clustersEvicted?(clusters: number): void;
  /** Change of the number of clusters that clients keep for a reason though they are not configured (`pilot_xds_kept_clusters`). */
  clustersRetained?(reason: RetainedCluster['state'], change: number): void;
  /** Change of the number of clusters that are given up (`pilot_xds_given_up_clusters`). */
  clustersGivenUp?(change: number): void;
  /** A connection was refused, or ended because it was too busy (`pilot_xds_refused_connections_total`). */
  connectionRefused?(why: Refusal): void;
  /** An address is held off from now on (`pilot_xds_held_off_total`). */
  addressHeldOff?(): void;
  /** Clients wait for a slot, or none does any more (`pilot_xds_waiting_clients`, `pilot_xds_admission_slots`). */
  admissionMeasured?(view: AdmissionView): void;
  /** A stream waited for a slot for too long and was rejected (`pilot_xds_refused_streams_total`). */
  streamRefused?(): void;
  /** A fan-out has reached all clients that were connected when it began; milliseconds since it was asked for. */
  pushFinished?(durationMs: number, clients: number): void;
}

/** One type that a client watches. */
export interface WatchView {
  readonly typeUrl: string;
  readonly wildcard: boolean;
  readonly names: readonly string[];
  readonly nonceSent: string;
  readonly nonceAcked: string;
  /** Nonce of the last response that the client rejected; empty when it has rejected none. */
  readonly nonceRejected?: string;
  readonly versionSent: string;
  readonly versionAcked: string;
  /** Why the client rejected what it was sent; empty when it did not. */
  readonly lastError: string;
  /** ISO 8601; undefined before the first response. */
  readonly sentAt: string | undefined;
  /** How many resources the client has: those that it was sent and not told to drop. */
  readonly resourcesSent?: number;
  /** What is still to be sent, for instance because the client has not answered the last response. */
  readonly pending?: 'nothing' | 'names' | 'changes' | 'everything';
  /** Clusters that resources of the type wait for, which are held back until the client can use them; absent: none. */
  readonly awaits?: readonly string[];
  /** Clusters that did not become usable within the limit, and are sent with a time limit for what they fetch. Absent: none. */
  readonly givenUp?: readonly string[];
  /** How many clusters that were no longer configured were removed before their time. Absent: none. */
  readonly evicted?: number;
  /** What make before break holds back or keeps of the type, and why. Absent: nothing. */
  readonly waits?: readonly RolloutWait[];
}

/** One connected client, for `/debug/adsz` and `/debug/syncz`. */
export interface ConnectionView {
  /** `<node id>-<counter>`. */
  readonly id: string;
  readonly node: string;
  /** The node as it described itself. */
  readonly identity: NodeIdentity;
  /** ISO 8601. */
  readonly connectedAt: string;
  readonly peer: string;
  readonly protocol: 'sotw' | 'delta';
  readonly state: string;
  /** Bytes of responses that were handed to gRPC and have not left. */
  readonly unflushedBytes?: number;
  readonly watches: readonly WatchView[];
}
