/**
 * Every event about the agent's xDS proxy (spec/agent.md §8): who sends it, who receives it. What Envoy and its control plane
 * say to each other passes the charts by: bytes go from one stream to the other.
 */

import type { TrustBundleReceived, TrustBundleServed } from './secrets-protocol.ts';
import type { ModuleFailed, ModuleFetched, ModuleReleased, ModuleRequired } from './wasm-protocol.ts';

// ---- agent ↔ xds-proxy

/** agent → xds-proxy. Open the socket that Envoy has its configuration from. */
export type XdsStart = { type: 'xds.start' };
/** xds-proxy → agent. Envoy may be started; the socket is empty where none is wanted. */
export type XdsListening = { type: 'xds.listening'; socket: string };
/** xds-proxy → agent. The socket cannot be had. */
export type XdsFailed = { type: 'xds.failed'; reason: string };
// ---- xds-proxy ↔ xds-proxy/server

/** xds-proxy/server → xds-proxy. The socket answers from now on. */
export type SocketListening = { type: 'socket.listening'; socket: string };
/** xds-proxy/server → xds-proxy. The socket cannot be opened. */
export type SocketFailed = { type: 'socket.failed'; reason: string };
/**
 * xds-proxy/server → xds-proxy. Somebody opened a stream. `envoy` tells Envoys of a hot restart apart: theirs live at the same
 * time. `chance`, drawn from 0 to 1, spreads pauses.
 */
export type DownstreamOpened = {
  type: 'downstream.opened';
  stream: number;
  envoy: string;
  protocol: 'sotw' | 'delta';
  chance: number;
};

// ---- xds-proxy ↔ xds-stream-N

/** xds-proxy → xds-stream-N. This set of roots is not going to be trusted. */
export type TrustBundleRefused = { type: 'trust-bundle.refused'; hash: string; reason: string };

/** xds-proxy → xds-stream-N → xds-stream-N/upstream. The control plane is to be told that Envoy has this certificate. */
export type CertificateTell = { type: 'certificate.tell'; serialNumber: string };
/** workload-health → xds-proxy. The workload can serve, or cannot any more; `message` says why not. */
export type HealthChanged = { type: 'health.changed'; healthy: boolean; message: string };
/** xds-proxy → xds-stream-N → xds-stream-N/upstream. The control plane is to be told that the workload is so. */
export type HealthTell = { type: 'health.tell'; healthy: boolean; message: string };
/** xds-proxy → xds-stream-N. A newer stream of the same Envoy has taken its place, or there are too many. */
export type StreamSupersede = { type: 'stream.supersede'; reason: string };
/** xds-stream-N → xds-proxy. The control plane answers, and has for a while: the next pause is the first one again. */
export type UpstreamServed = { type: 'upstream.served'; stream: number };
/**
 * xds-stream-N → xds-proxy. The control plane cannot be had, or is gone. `isRefusal`: it answers, and does not want this agent.
 * `retryAfterMs`: so long it asks to be left alone.
 */
export type UpstreamFailed = {
  type: 'upstream.failed';
  stream: number;
  reason: string;
  isRefusal: boolean;
  retryAfterMs: number;
};
/** xds-stream-N → xds-proxy. Its Envoy's stream is over. */
export type StreamEnded = { type: 'stream.ended'; stream: number; reason: string };

// ---- xds-stream-N ↔ its effects

/** xds-stream-N → xds-stream-N/downstream. End Envoy's stream with this status. */
export type DownstreamEnd = { type: 'downstream.end'; code: StreamCode; reason: string };
/** xds-stream-N/downstream → xds-stream-N. Envoy's stream is gone, whoever ended it. */
export type DownstreamClosed = { type: 'downstream.closed'; reason: string };
/** xds-stream-N/upstream → xds-stream-N. The control plane is connected, and what Envoy said is on its way. */
export type UpstreamOpened = { type: 'upstream.opened'; shown: string };
/** xds-stream-N/upstream → xds-stream-N. Nobody is there, or not whom it should be; of Envoy's stream nothing was read. */
export type UpstreamUnreachable = { type: 'upstream.unreachable'; reason: string; chance: number };
/** xds-stream-N/upstream → xds-stream-N. The first answer has come. */
export type UpstreamAnswered = { type: 'upstream.answered' };
/** xds-stream-N/upstream → xds-stream-N. The control plane ended the stream, or is gone. */
export type UpstreamLost = { type: 'upstream.lost'; code: StreamCode; reason: string; retryAfterMs: number };
/** xds-stream-N/upstream → xds-stream-N. What came from Envoy's side is no discovery request. */
export type DownstreamInvalid = { type: 'downstream.invalid'; reason: string };
/** xds-stream-N/upstream → xds-stream-N. This side takes no more bytes for now, so the other one is not read either. */
export type DownstreamCongested = { type: 'downstream.congested' };
/** As {@link DownstreamCongested}, of the control plane. */
export type UpstreamCongested = { type: 'upstream.congested' };
/** xds-stream-N/upstream → xds-stream-N. Envoy has read on. */
export type DownstreamRelieved = { type: 'downstream.relieved' };
/** As {@link DownstreamRelieved}, of the control plane. */
export type UpstreamRelieved = { type: 'upstream.relieved' };
/**
 * xds-stream-N/upstream → xds-stream-N. Envoy rejects what the control plane sent. `reason` is Envoy's, cut at 1,000 characters.
 */
export type ResourcesRejected = { type: 'resources.rejected'; typeUrl: string; nonce: string; reason: string };
/** xds-stream-N/upstream → xds-stream-N. A response went to Envoy. Told when all is recorded (`--traceLevel full`): it passes for every push. */
export type ResponsePassed = { type: 'response.passed'; typeUrl: string; nonce: string };
/**
 * xds-stream-N/upstream → xds-stream-N. A request went to the control plane; its nonce is empty where it answers nothing. Told as
 * {@link ResponsePassed}.
 */
export type RequestPassed = { type: 'request.passed'; typeUrl: string; nonce: string };
/** xds-stream-N/upstream → xds-stream-N. Roots to trust have come, and wait for their acknowledgement. */
export type BundleArrived = {
  type: 'bundle.arrived';
  roots: readonly string[];
  hash: string;
  members: readonly string[];
  tainted: readonly string[];
};
/** xds-stream-N → xds-stream-N/upstream. Acknowledge these roots; refuse them where there is a reason. */
export type BundleAnswer = { type: 'bundle.answer'; hash: string; refusal: string };

/** What a stream may end with, by gRPC's names. */
export type StreamCode = string;

/** What the effects of a stream tell it. */
export type StreamReport =
  | DownstreamClosed
  | UpstreamOpened
  | UpstreamUnreachable
  | UpstreamAnswered
  | UpstreamLost
  | DownstreamInvalid
  | DownstreamCongested
  | DownstreamRelieved
  | UpstreamCongested
  | UpstreamRelieved
  | ResourcesRejected
  | ResponsePassed
  | RequestPassed
  | BundleArrived
  | ModuleRequired
  | ModuleReleased;

/** What a stream tells the proxy. */
export type StreamNews =
  | UpstreamServed
  | UpstreamFailed
  | StreamEnded
  | TrustBundleReceived
  | ModuleRequired
  | ModuleReleased;

/** What the proxy tells a stream. */
export type StreamOrder =
  | StreamSupersede
  | TrustBundleServed
  | TrustBundleRefused
  | CertificateTell
  | HealthTell
  | ModuleFetched
  | ModuleFailed;
