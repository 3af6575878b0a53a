/**
 * Every event about the agent's xDS proxy (spec/agent.md §8): sender and receiver. Requests and responses are not
 * events: they are forwarded as bytes.
 */

import type { TrustBundleReceived, TrustBundleServed } from './secrets-protocol.ts';
import type { ModuleFailed, ModuleFetched, ModuleReleased, ModuleRequired } from './wasm-protocol.ts';

// ---- agent ↔ xds-proxy

/** agent → xds-proxy. Open the socket from which Envoy receives its configuration. */
export type XdsStart = { type: 'xds.start' };
/** xds-proxy → agent. Envoy may be started; `socket` is empty if no proxy is needed. */
export type XdsListening = { type: 'xds.listening'; socket: string };
/** xds-proxy → agent. The socket cannot be opened. */
export type XdsFailed = { type: 'xds.failed'; reason: string };
// ---- xds-proxy ↔ xds-proxy/server

/** xds-proxy/server → xds-proxy. The socket is open. */
export type SocketListening = { type: 'socket.listening'; socket: string };
/** xds-proxy/server → xds-proxy. The socket cannot be opened. */
export type SocketFailed = { type: 'socket.failed'; reason: string };
/**
 * xds-proxy/server → xds-proxy. A client opened a stream. `envoy` distinguishes Envoys of a hot restart, whose streams exist at
 * the same time. `chance`, drawn from 0 to 1, spreads pauses.
 */
export type DownstreamOpened = {
  type: 'downstream.opened';
  stream: number;
  envoy: string;
  protocol: 'sotw' | 'delta';
  chance: number;
};

// ---- xds-proxy ↔ xds-stream-N

/** xds-proxy → xds-stream-N. This set of roots will not be trusted. */
export type TrustBundleRefused = { type: 'trust-bundle.refused'; hash: string; reason: string };

/** xds-proxy → xds-stream-N → xds-stream-N/upstream. Report to the control plane that Envoy has this certificate. */
export type CertificateReport = { type: 'certificate.report'; serialNumber: string };
/** workload-health → xds-proxy. The health of the workload changed; `message` has the reason if it is unhealthy. */
export type HealthChanged = { type: 'health.changed'; healthy: boolean; message: string };
/** xds-proxy → xds-stream-N → xds-stream-N/upstream. Report the health of the workload to the control plane. */
export type HealthReport = { type: 'health.report'; healthy: boolean; message: string };
/** xds-proxy → xds-stream-N. A newer stream of the same Envoy replaces this one, or the limit of streams is reached. */
export type StreamSupersede = { type: 'stream.supersede'; reason: string };
/** xds-stream-N → xds-proxy. The control plane has served for some time: the pause is reset. */
export type UpstreamServed = { type: 'upstream.served'; stream: number };
/**
 * xds-stream-N → xds-proxy. The control plane is unavailable or ended the stream. `isRefusal`: it responded and rejected this
 * agent. `retryAfterMs`: pause that it requested.
 */
export type UpstreamFailed = {
  type: 'upstream.failed';
  stream: number;
  reason: string;
  isRefusal: boolean;
  retryAfterMs: number;
};
/** xds-stream-N → xds-proxy. Envoy's stream ended. */
export type StreamEnded = { type: 'stream.ended'; stream: number; reason: string };

// ---- xds-stream-N ↔ its effects

/** xds-stream-N → xds-stream-N/downstream. End Envoy's stream with this status. */
export type DownstreamEnd = { type: 'downstream.end'; code: StreamCode; reason: string };
/** xds-stream-N/downstream → xds-stream-N. Envoy's stream is closed, by either side. */
export type DownstreamClosed = { type: 'downstream.closed'; reason: string };
/** xds-stream-N/upstream → xds-stream-N. The control plane is connected, and Envoy's requests are being forwarded. */
export type UpstreamOpened = { type: 'upstream.opened'; shown: string };
/**
 * xds-stream-N/upstream → xds-stream-N. No server responded, or its certificate is not valid; nothing was read from Envoy's
 * stream.
 */
export type UpstreamUnreachable = { type: 'upstream.unreachable'; reason: string; chance: number };
/** xds-stream-N/upstream → xds-stream-N. The first response was received. */
export type UpstreamResponded = { type: 'upstream.responded' };
/** xds-stream-N/upstream → xds-stream-N. The control plane ended the stream, or the connection failed. */
export type UpstreamLost = { type: 'upstream.lost'; code: StreamCode; reason: string; retryAfterMs: number };
/** xds-stream-N/upstream → xds-stream-N. A message of Envoy is not a discovery request. */
export type DownstreamInvalid = { type: 'downstream.invalid'; reason: string };
/** xds-stream-N/upstream → xds-stream-N. Envoy does not accept more bytes, so reading from the control plane is paused. */
export type DownstreamCongested = { type: 'downstream.congested' };
/** As {@link DownstreamCongested}, of the control plane. */
export type UpstreamCongested = { type: 'upstream.congested' };
/** xds-stream-N/upstream → xds-stream-N. Envoy reads again. */
export type DownstreamRelieved = { type: 'downstream.relieved' };
/** As {@link DownstreamRelieved}, of the control plane. */
export type UpstreamRelieved = { type: 'upstream.relieved' };
/**
 * xds-stream-N/upstream → xds-stream-N. Envoy rejected resources of the control plane. `reason` is Envoy's, at most 1,000
 * characters.
 */
export type ResourcesRejected = { type: 'resources.rejected'; typeUrl: string; nonce: string; reason: string };
/**
 * xds-stream-N/upstream → xds-stream-N. A response was forwarded to Envoy. Recorded only with `--traceLevel full`, because it
 * occurs for every push.
 */
export type ResponseForwarded = { type: 'response.forwarded'; typeUrl: string; nonce: string };
/**
 * xds-stream-N/upstream → xds-stream-N. A request was forwarded to the control plane; `nonce` is empty if it acknowledges nothing.
 * Recorded as {@link ResponseForwarded}.
 */
export type RequestForwarded = { type: 'request.forwarded'; typeUrl: string; nonce: string };
/** xds-stream-N/upstream → xds-stream-N. New roots were received and wait for their acknowledgement. */
export type BundleReceived = {
  type: 'bundle.received';
  roots: readonly string[];
  hash: string;
  members: readonly string[];
  tainted: readonly string[];
};
/** xds-stream-N → xds-stream-N/upstream. Acknowledge these roots, or reject them if `refusal` is not empty. */
export type BundleRespond = { type: 'bundle.respond'; hash: string; refusal: string };

/** gRPC name of the status with which a stream ends. */
export type StreamCode = string;

/** Events of the effects of a stream. */
export type StreamReport =
  | DownstreamClosed
  | UpstreamOpened
  | UpstreamUnreachable
  | UpstreamResponded
  | UpstreamLost
  | DownstreamInvalid
  | DownstreamCongested
  | DownstreamRelieved
  | UpstreamCongested
  | UpstreamRelieved
  | ResourcesRejected
  | ResponseForwarded
  | RequestForwarded
  | BundleReceived
  | ModuleRequired
  | ModuleReleased;

/** Events of a stream to the proxy. */
export type XdsStreamReport =
  | UpstreamServed
  | UpstreamFailed
  | StreamEnded
  | TrustBundleReceived
  | ModuleRequired
  | ModuleReleased;

/** Orders of the proxy to a stream. */
export type XdsStreamOrder =
  | StreamSupersede
  | TrustBundleServed
  | TrustBundleRefused
  | CertificateReport
  | HealthReport
  | ModuleFetched
  | ModuleFailed;
