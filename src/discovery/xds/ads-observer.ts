import type { RetainedCluster } from '../../../machines/discovery/xds/cluster-rollout.ts';
import type { ConnectionRefusal } from './admission/unidentified-connections.ts';
import type { NodeIdentity, ResponseCause } from './resource-source.ts';
import type { RolloutWait } from './rollout/rollout-waits.ts';

/** Clients that wait for a slot (chart `stream-admission`). */
export interface AdmissionView {
  readonly streams: number;
  /** Number of connections before their TLS handshake or HTTP/2 session. */
  readonly connections: number;
  /** Maximum number of clients in each stage. */
  readonly slots: number;
}

/** Methods must not throw and must return immediately. */
export interface AdsObserver {
  /** `/package.Service/Method` of an accepted stream (`grpc_server_started_total`). */
  streamOpened?(method: string): void;
  /** @param code gRPC status name (`grpc_server_handled_total`) */
  streamClosed?(method: string, code: string): void;
  /** `grpc_server_msg_received_total`, `pilot_xds_recv_max`. */
  requestReceived?(method: string, bytes: number): void;
  /** `grpc_server_msg_sent_total`. */
  messageSent?(method: string): void;
  /** @param connections accepted clients, including this one */
  clientConnected?(node: string, connections: number): void;
  /** @param connections accepted clients, without this one */
  clientDisconnected?(node: string, connections: number): void;
  responseSent?(typeUrl: string, response: { cause: ResponseCause; resources: number; bytes: number }): void;
  /** Time until the last bytes were sent (`pilot_xds_send_time`). */
  responseFlushed?(typeUrl: string, ms: number): void;
  /** Called for a failure while the client is connected (`pilot_xds_pushes{type="…_senderr"}`). */
  sendFailed?(typeUrl: string, node: string, error: Error): void;
  /** Time until a request is processed (`pilot_xds_request_time`). */
  requestTaken?(typeUrl: string, ms: number): void;
  /** Time to get resources from the source (`pilot_xds_push_time`). */
  resourcesGenerated?(typeUrl: string, ms: number): void;
  responseRejected?(typeUrl: string, node: string, reason: string): void;
  /** `pilot_xds_expired_nonce`. */
  nonceExpired?(typeUrl: string, node: string): void;
  sourceFailed?(typeUrl: string, node: string, error: unknown): void;
  /** Time of a push in the queue (`pilot_proxy_queue_time`). */
  queueTime?(ms: number): void;
  /**
   * Time from the publication of a push context, after the debounce, until the stream of an affected proxy has accepted the push
   * (`pilot_proxy_convergence_time`): its responses are written, or wait for the ACK of another type.
   */
  proxyConverged?(ms: number): void;
  /** `pilot_xds_waiting_for_clusters`. */
  clustersAwaited?(isWaiting: boolean): void;
  /** Clusters that could not be used within the limit (`pilot_xds_abandoned_clusters_total`). */
  clustersAbandoned?(clusters: number): void;
  /** `pilot_xds_evicted_clusters_total`. */
  clustersEvicted?(clusters: number): void;
  /** `pilot_xds_kept_clusters`. */
  clustersRetained?(reason: RetainedCluster['state'], change: number): void;
  /** `pilot_xds_given_up_clusters`. */
  clustersGivenUp?(change: number): void;
  /** `pilot_xds_refused_connections_total`. */
  connectionRefused?(reason: ConnectionRefusal): void;
  /** `pilot_xds_held_off_total`. */
  addressHeldOff?(): void;
  /** `pilot_xds_waiting_clients`, `pilot_xds_admission_slots`. */
  admissionMeasured?(view: AdmissionView): void;
  /** `pilot_xds_refused_streams_total`. */
  streamRefused?(): void;
  pushFinished?(durationMs: number, clients: number): void;
}

export interface WatchView {
  readonly typeUrl: string;
  readonly wildcard: boolean;
  readonly names: readonly string[];
  readonly nonceSent: string;
  readonly nonceAcked: string;
  readonly nonceRejected?: string;
  readonly versionSent: string;
  readonly versionAcked: string;
  /** Empty after an ACK. */
  readonly lastError: string;
  /** Last response (ISO 8601). `undefined` before the first. */
  readonly sentAt: string | undefined;
  readonly resourcesSent?: number;
  readonly pending?: 'nothing' | 'names' | 'changes' | 'everything';
  /** Clusters that delayed resources of the type wait for. */
  readonly awaits?: readonly string[];
  /** Clusters that are sent with a timeout for fetching. */
  readonly givenUp?: readonly string[];
  readonly evicted?: number;
  readonly waits?: readonly RolloutWait[];
}

export interface ConnectionView {
  /** The ID has the form `<node ID>-<counter>`. */
  readonly id: string;
  readonly node: string;
  readonly identity: NodeIdentity;
  /** ISO 8601. */
  readonly connectedAt: string;
  readonly peer: string;
  readonly protocol: 'sotw' | 'delta';
  readonly state: string;
  /** Bytes that grpc-js accepted but has not sent. */
  readonly unflushedBytes?: number;
  readonly watches: readonly WatchView[];
}
