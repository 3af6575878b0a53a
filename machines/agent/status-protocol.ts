/** Events between the status server and its chart: which Envoy counts, and how a readiness call is answered. */
import type { QuitRequested, UpgradeRequested } from './protocol.ts';

/** status/http → status. The port is open. */
export type HttpListening = { type: 'http.listening'; port: number };
/** status/http → status. The port cannot be opened, or its server broke. */
export type HttpFailed = { type: 'http.failed'; reason: string };
/**
 * status → status/http. The Envoy that counts from now on, for readiness and metrics: the serving epoch's. What was asked of the
 * one before it is answered no more.
 */
export type AdminUse = { type: 'admin.use'; epoch: number; baseId: number; adminPort: number; pid: number };
/** status/http → status. Somebody on this host orders /drain: Envoy is to let its connections go, and the agent stays. */
export type DrainRequested = { type: 'drain.requested' };
/** status → status/http. Have the Envoy that serves drain, and live on. */
export type EnvoyDrain = { type: 'envoy.drain' };
/** status/http → status. Whether the Envoy that serves has taken the order; `reason` is empty where it has. */
export type DrainOrdered = { type: 'drain.ordered'; reason: string };
/** status/http → status. Somebody asks /healthz/ready; `request` names the call. */
export type ReadinessAsked = { type: 'readiness.asked'; request: number };
/**
 * status → status/http. Ask the serving Envoy first: by its admin interface; or, where that may be another one's or nobody's,
 * whether its process lives and one of its ports answers. `admin or port`: the admin's word counts where there is one.
 */
export type EnvoyAsk = { type: 'envoy.ask'; request: number; at: 'admin' | 'port' | 'admin or port' };
/** `why`: in Envoy's words; empty where there are very many. */
export type RefusedListener = { readonly name: string; readonly why: string };
/**
 * status/http → status. Which listeners the serving Envoy rejected and lacks, usually none. Read when it starts to serve and with each
 * readiness check by its admin interface; reported when they differ from the last report.
 */
export type ListenersChecked = { type: 'listeners.checked'; listeners: readonly RefusedListener[] };
/**
 * status/http → status. What Envoy answered; `by` the agent: Envoy is live, and this proxy is not ready all the same. `unserved`: why none of the ports that the application was said to have is served;
 * empty where one is, where it was said to have none, and where no live admin interface could be asked.
 */
export type EnvoyAnswered = {
  type: 'envoy.answered';
  request: number;
  by: 'admin' | 'port' | 'agent';
  live: boolean;
  detail: string;
  unserved: string;
};
/**
 * status → status/http. The answer to a readiness call. `heldMs`: so long it is the answer to any other call, and for as long
 * again each time that Envoy's admin interface says the same; 0: each call is asked for. `listenersHeldMs`: so long Envoy is not
 * asked for the listeners that it refuses when it is asked whether it says the same.
 */
export type ReadinessAnswer = {
  type: 'readiness.answer';
  request: number;
  ready: boolean;
  reason: string;
  heldMs: number;
  listenersHeldMs: number;
};
/** status → status/http. Another Envoy counts, or none, or another port of it: no answer is held any more. */
export type ReadinessOutdated = { type: 'readiness.outdated' };
/** Within status. The call that was open is answered. */
export type ReadinessSettled = { type: 'readiness.settled' };

/** What the status actor orders of the http effect. */
export type HttpOrder = AdminUse | EnvoyAsk | EnvoyDrain | ReadinessAnswer | ReadinessOutdated;
/** What the http effect tells the status actor. */
export type HttpReport =
  | HttpListening
  | HttpFailed
  | ReadinessAsked
  | EnvoyAnswered
  | ListenersChecked
  | QuitRequested
  | UpgradeRequested
  | DrainRequested
  | DrainOrdered;
