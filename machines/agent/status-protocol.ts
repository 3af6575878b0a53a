import type { QuitRequested, UpgradeRequested } from './protocol.ts';

/** status/http → status. The port is open. */
export type StatusHttpListening = { type: 'http.listening'; port: number };
/** status/http → status. The port cannot be opened, or its server failed. */
export type StatusHttpFailed = { type: 'http.failed'; reason: string };
/** status → status/http. The serving Envoy, for readiness and metrics. Pending probes of the previous one are cancelled. */
export type AdminUse = { type: 'admin.use'; epoch: number; baseId: number; adminPort: number; pid: number };
/** status/http → status. POST /drain from this host: drain Envoy's connections without stopping the agent. */
export type DrainRequested = { type: 'drain.requested' };
/** status → status/http. Drain the serving Envoy without stopping it. */
export type EnvoyDrain = { type: 'envoy.drain' };
/** status/http → status. Whether the serving Envoy accepted the drain. `reason` is empty if it did. */
export type DrainOrdered = { type: 'drain.ordered'; reason: string };
/** status/http → status. GET /healthz/ready; `request` identifies the request. */
export type ReadinessRequested = { type: 'readiness.requested'; request: number };
/**
 * status → status/http. Probe the serving Envoy by its admin interface or, if the admin port may belong to another epoch, by its process and one of
 * its ports.
 */
export type EnvoyProbe = { type: 'envoy.probe'; request: number; at: 'admin' | 'port' | 'admin or port' };
/** `reason`: message of Envoy; empty if there are too many listeners. */
export type RefusedListener = { readonly name: string; readonly reason: string };
/** status/http → status. Listeners that the serving Envoy rejected and lacks, usually none. Reported when they changed. */
export type ListenersChecked = { type: 'listeners.checked'; listeners: readonly RefusedListener[] };
/**
 * status/http → status. Result of the probe. `by: 'agent'`: Envoy is live, but the proxy is not ready for another reason. `unserved`: why no
 * application port is served; empty if one is, if none is configured, or without a live response of the admin interface.
 */
export type EnvoyResponded = {
  type: 'envoy.responded';
  request: number;
  by: 'admin' | 'port' | 'agent';
  live: boolean;
  detail: string;
  unserved: string;
};
/**
 * status → status/http. Response to a readiness request. `heldMs`: how long the response is reused; each confirmation by the admin interface extends
 * it; 0: not reused. `listenersHeldMs`: minimum time between two such confirmations that also read the rejected listeners.
 */
export type ReadinessRespond = {
  type: 'readiness.respond';
  request: number;
  ready: boolean;
  reason: string;
  heldMs: number;
  listenersHeldMs: number;
};
/** status → status/http. The serving Envoy or its admin port changed: do not reuse responses. */
export type ReadinessInvalidate = { type: 'readiness.invalidate' };
/** Within status. The pending request has a response. */
export type ReadinessResponded = { type: 'readiness.responded' };

export type StatusHttpOrder = AdminUse | EnvoyProbe | EnvoyDrain | ReadinessRespond | ReadinessInvalidate;
export type StatusHttpReport =
  | StatusHttpListening
  | StatusHttpFailed
  | ReadinessRequested
  | EnvoyResponded
  | ListenersChecked
  | QuitRequested
  | UpgradeRequested
  | DrainRequested
  | DrainOrdered;
