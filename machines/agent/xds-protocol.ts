/** Requests and responses are not events: they are forwarded as bytes. */

import type { TrustBundleReceived, TrustBundleServed } from './secrets-protocol.ts';
import type { ModuleFailed, ModuleFetched, ModuleReleased, ModuleRequired } from './wasm-protocol.ts';

/** agent → xds-proxy. Open the socket from which Envoy receives its configuration. */
export type XdsStart = { type: 'xds.start' };
/** xds-proxy → agent. Envoy may be started; `socket` is empty if no proxy is needed. */
export type XdsListening = { type: 'xds.listening'; socket: string };
/** xds-proxy → agent. The socket cannot be opened. */
export type XdsFailed = { type: 'xds.failed'; reason: string };

/** xds-proxy/server → xds-proxy. The socket is open. */
export type SocketListening = { type: 'socket.listening'; socket: string };
/** xds-proxy/server → xds-proxy. The socket cannot be opened. */
export type SocketFailed = { type: 'socket.failed'; reason: string };
/**
 * xds-proxy/server → xds-proxy. A client opened a stream. `envoy` distinguishes the Envoys of a hot restart. `chance`: random, from 0 to 1, spreads
 * pauses.
 */
export type DownstreamOpened = {
  type: 'downstream.opened';
  stream: number;
  envoy: string;
  protocol: 'sotw' | 'delta';
  chance: number;
};

/** xds-proxy → xds-stream-N. Envoy will not trust this set of roots. */
export type TrustBundleRefused = { type: 'trust-bundle.refused'; hash: string; reason: string };

/** xds-proxy → xds-stream-N → xds-stream-N/upstream. Report to the control plane that Envoy has this certificate. */
export type CertificateReport = { type: 'certificate.report'; serialNumber: string };
/** workload-health → xds-proxy. The health of the workload changed. `message`: reason if it is unhealthy. */
export type HealthChanged = { type: 'health.changed'; healthy: boolean; message: string };
/** xds-proxy → xds-stream-N → xds-stream-N/upstream. Report the health of the workload to the control plane. */
export type HealthReport = { type: 'health.report'; healthy: boolean; message: string };
/** xds-proxy → xds-stream-N. A newer stream of the same Envoy replaces this one, or there are too many streams. */
export type StreamSupersede = { type: 'stream.supersede'; reason: string };
/** xds-stream-N → xds-proxy. The control plane has served for some time, so the pause is reset. */
export type UpstreamServed = { type: 'upstream.served'; stream: number };
/**
 * xds-stream-N → xds-proxy. The control plane is unavailable or ended the stream. `isRefusal`: it rejected this agent. `retryAfterMs`:
 * pause that it requested.
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
/** xds-stream-N/downstream → xds-stream-N. Either side closed Envoy's stream. */
export type DownstreamClosed = { type: 'downstream.closed'; reason: string };
/** xds-stream-N/upstream → xds-stream-N. The control plane is connected, and Envoy's requests are forwarded. */
export type UpstreamOpened = { type: 'upstream.opened'; credential: string };
/** xds-stream-N/upstream → xds-stream-N. No server responded, or its certificate is invalid. No request of Envoy was read. */
export type UpstreamUnreachable = { type: 'upstream.unreachable'; reason: string; chance: number };
/** xds-stream-N/upstream → xds-stream-N. The first response was received. */
export type UpstreamResponded = { type: 'upstream.responded' };
/** xds-stream-N/upstream → xds-stream-N. The control plane ended the stream, or the connection failed. */
export type UpstreamLost = { type: 'upstream.lost'; code: StreamCode; reason: string; retryAfterMs: number };
/** xds-stream-N/upstream → xds-stream-N. A message of Envoy is not a discovery request. */
export type DownstreamInvalid = { type: 'downstream.invalid'; reason: string };
/** xds-stream-N/upstream → xds-stream-N. Envoy accepts no more bytes, so reading from the control plane is paused. */
export type DownstreamCongested = { type: 'downstream.congested' };
/** xds-stream-N/upstream → xds-stream-N. The control plane accepts no more bytes, so reading from Envoy is paused. */
export type UpstreamCongested = { type: 'upstream.congested' };
/** xds-stream-N/upstream → xds-stream-N. Envoy reads again. */
export type DownstreamRelieved = { type: 'downstream.relieved' };
/** xds-stream-N/upstream → xds-stream-N. The control plane reads again. */
export type UpstreamRelieved = { type: 'upstream.relieved' };
/**
 * xds-stream-N/upstream → xds-stream-N. Envoy rejected resources of the control plane. `reason` is Envoy's, at most 1,000
 * characters.
 */
export type ResourcesRejected = { type: 'resources.rejected'; typeUrl: string; nonce: string; reason: string };
/**
 * xds-stream-N/upstream → xds-stream-N. A response was forwarded to Envoy. Recorded only with `--traceLevel full`, because every push
 * causes some.
 */
export type ResponseForwarded = { type: 'response.forwarded'; typeUrl: string; nonce: string };
/**
 * xds-stream-N/upstream → xds-stream-N. A request was forwarded to the control plane. `nonce` is empty if it acknowledges nothing. Recorded only with
 * `--traceLevel full`.
 */
export type RequestForwarded = { type: 'request.forwarded'; typeUrl: string; nonce: string };
/** xds-stream-N/upstream → xds-stream-N. New roots were received, which the agent acknowledges later. */
export type BundleReceived = {
  type: 'bundle.received';
  roots: readonly string[];
  hash: string;
  members: readonly string[];
  tainted: readonly string[];
};
/** xds-stream-N → xds-stream-N/upstream. Acknowledge these roots, or reject them if `refusal` is not empty. */
export type BundleRespond = { type: 'bundle.respond'; hash: string; refusal: string };

export type StreamCode = string;

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

export type XdsStreamReport =
  | UpstreamServed
  | UpstreamFailed
  | StreamEnded
  | TrustBundleReceived
  | ModuleRequired
  | ModuleReleased;

export type XdsStreamOrder =
  | StreamSupersede
  | TrustBundleServed
  | TrustBundleRefused
  | CertificateReport
  | HealthReport
  | ModuleFetched
  | ModuleFailed;
