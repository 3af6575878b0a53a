/**
 * Every event about an agent that gives way to a newer one of its container: who sends it, who receives it. `predecessor` is the older
 * agent's side, `successor` the newer one's; between the two lies a socket.
 */
import type { ClaimedIds } from './envoy/adoption.ts';

// ---- predecessor/link → predecessor, and back: what a newer agent says, and what it is told

/** predecessor/link → predecessor. A newer agent is there, and could take over now. */
export type SuccessorReady = { type: 'successor.ready'; pid: number };
/** predecessor/link → predecessor. The newer agent has taken over what this one had. */
export type SuccessorHolds = { type: 'successor.holds' };
/** predecessor/link → predecessor. The newer agent has ended, or says nothing any more. */
export type SuccessorGone = { type: 'successor.gone'; reason: string };
/** predecessor/link → predecessor. No newer agent could be heard: the socket cannot be opened. */
export type LinkFailed = { type: 'link.failed'; reason: string };
export type LinkReport = SuccessorReady | SuccessorHolds | SuccessorGone | LinkFailed;
/** predecessor → predecessor/link. This agent decides nothing any more: the newer one may take over. */
export type SuccessorGrant = { type: 'successor.grant' };
/** predecessor → predecessor/link. This agent goes on, and the newer one is to end. */
export type SuccessorRefuse = { type: 'successor.refuse'; reason: string };
export type LinkOrder = SuccessorGrant | SuccessorRefuse;

// ---- predecessor ↔ agent

/** predecessor → agent. The record is written: nothing is lost if this agent decides nothing from now on. */
export type SuccessionDue = { type: 'succession.due' };
/** agent → predecessor. The supervisor is stopped; its Envoys run on. */
export type SuccessionBegin = { type: 'succession.begin' };
/** agent → predecessor. This agent is starting, or ending: not now. */
export type SuccessionRefuse = { type: 'succession.refuse'; reason: string };
/** predecessor → agent. The newer agent has it all: this one ends, and ends nothing else. */
export type SuccessionDone = { type: 'succession.done' };
/** predecessor → agent. The newer agent has not taken over, and is gone: this one has the right to decide again, and what runs by now. */
export type SuccessionFailed = { type: 'succession.failed'; reason: string; claimed: ClaimedIds };

// ---- successor/link → successor, and back

/** successor/link → successor. The older agent decides nothing any more. */
export type PredecessorGranted = { type: 'predecessor.granted' };
/** successor/link → successor. The older agent goes on. */
export type PredecessorRefused = { type: 'predecessor.refused'; reason: string };
/** successor/link → successor. The older agent has ended, or cannot be reached. */
export type PredecessorGone = { type: 'predecessor.gone'; reason: string };
export type PredecessorReport = PredecessorGranted | PredecessorRefused | PredecessorGone;
/** successor → successor/link. Tell the older agent that this one has taken over. */
export type HoldTell = { type: 'hold.tell' };

// ---- successor ↔ agent

/** successor → agent. The older agent has given way, or has ended: what it had is this one's to take over. */
export type SuccessionTaken = { type: 'succession.taken'; claimed: ClaimedIds };
/** successor → agent. The older agent goes on, or what it had is not to be had: this one is not needed. */
export type SuccessionRefused = { type: 'succession.refused'; reason: string };
/** agent → successor. What was running is this agent's, and its ports are open. */
export type SuccessionComplete = { type: 'succession.complete' };
