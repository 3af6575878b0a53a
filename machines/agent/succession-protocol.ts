/** `predecessor` runs in the older agent, `successor` in the newer one of the same container; a socket connects them. */
import type { ClaimedIds } from './envoy/adoption.ts';

/** predecessor/link → predecessor. A newer agent is connected and can take over now. */
export type SuccessorReady = { type: 'successor.ready'; pid: number };
/** predecessor/link → predecessor. The newer agent has taken over. */
export type SuccessorConfirmed = { type: 'successor.confirmed' };
/** predecessor/link → predecessor. The newer agent exited or does not respond. */
export type SuccessorLost = { type: 'successor.lost'; reason: string };
/** predecessor/link → predecessor. The socket for newer agents cannot be opened. */
export type LinkFailed = { type: 'link.failed'; reason: string };
export type LinkReport = SuccessorReady | SuccessorConfirmed | SuccessorLost | LinkFailed;
/** predecessor → predecessor/link. This agent has released control: the newer one may take over. */
export type SuccessorGrant = { type: 'successor.grant' };
/** predecessor → predecessor/link. This agent keeps control, and the newer one must exit. */
export type SuccessorRefuse = { type: 'successor.refuse'; reason: string };
export type LinkOrder = SuccessorGrant | SuccessorRefuse;

/** predecessor → agent. The record is written, so control can be released without losing state. */
export type SuccessionDue = { type: 'succession.due' };
/** agent → predecessor. The supervisor has stopped, and its Envoys keep running. */
export type SuccessionBegin = { type: 'succession.begin' };
/** agent → predecessor. This agent is starting or stopping and cannot hand over now. */
export type SuccessionRefuse = { type: 'succession.refuse'; reason: string };
/** predecessor → agent. The newer agent has taken over: this agent exits and leaves the Envoys running. */
export type SuccessionDone = { type: 'succession.done' };
/** predecessor → agent. The newer agent failed and exited: this agent has control again. `claimed`: its base IDs and running Envoys. */
export type SuccessionFailed = { type: 'succession.failed'; reason: string; claimed: ClaimedIds };

/** successor/link → successor. The older agent has released control. */
export type PredecessorGranted = { type: 'predecessor.granted' };
/** successor/link → successor. The older agent keeps control. */
export type PredecessorRefused = { type: 'predecessor.refused'; reason: string };
/** successor/link → successor. The older agent exited, or is unreachable. */
export type PredecessorLost = { type: 'predecessor.lost'; reason: string };
export type PredecessorReport = PredecessorGranted | PredecessorRefused | PredecessorLost;
/** successor → successor/link. Notify the older agent that this one has taken over. */
export type TakeoverConfirm = { type: 'takeover.confirm' };

/** successor → agent. The older agent released control or exited: this agent adopts its Envoys. */
export type SuccessionTaken = { type: 'succession.taken'; claimed: ClaimedIds };
/** successor → agent. The older agent keeps control, or its base IDs are unavailable: this agent exits. */
export type SuccessionRefused = { type: 'succession.refused'; reason: string };
/** agent → successor. This agent adopted the Envoys, and its ports are open. */
export type SuccessionComplete = { type: 'succession.complete' };
