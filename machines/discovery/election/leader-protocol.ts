/**
 * Every event between the charts that decide which replica writes, and when, and their effects. Each duty has a Lease, and whoever holds it
 * writes (spec/kubernetes.md §2).
 */
import type { CatalogueRow } from '../../catalogue-row.ts';

/** Of a duty: the name of its Lease. */
export type LeaseName = string;

// ---- discovery ↔ elections

/** discovery → elections. Write the Lease of this replica's presence: proxies will connect soon. */
export type LeadersAnnounce = { type: 'leaders.announce' };
/** elections → discovery. Other replicas can see that this one runs, or its Lease was not written within the limit. */
export type LeadersAnnounced = { type: 'leaders.announced' };
/** discovery → elections. The program serves: stand for every duty. */
export type LeadersStand = { type: 'leaders.stand' };
/** discovery → elections. The program ends: give back what is held. It may be asked for again; each time is answered. */
export type LeadersResign = { type: 'leaders.resign' };
/** elections → discovery. Nothing is held any more, or it could not be given back in time and will end by itself. */
export type LeadersResigned = { type: 'leaders.resigned' };

// ---- elections ↔ leader-N

/** elections → leader-N. Give back what is held, and end. */
export type LeaderResign = { type: 'leader.resign' };
/** leader-N → elections. This replica writes from now on. */
export type LeaderElected = { type: 'leader.elected'; lease: LeaseName };
/** leader-N → elections. It writes no more, and stands again. */
export type LeaderLost = { type: 'leader.lost'; lease: LeaseName; reason: string };
/** leader-N → elections. The Lease cannot be had: it is tried again. */
export type LeaderFailed = { type: 'leader.failed'; lease: LeaseName; reason: string };
/** leader-N → elections. It has nothing and wants nothing any more. `released`: the Lease was given back, and others need not wait. */
export type LeaderResigned = { type: 'leader.resigned'; lease: LeaseName; released: boolean };

// ---- elected-writer-N

/** elected-writer-N/due → elected-writer-N. Something is to be written. */
export type DutyDue = { type: 'duty.due' };
/** elected-writer-N → leader-N. A run is over. `reason`: why the last of those failed that did. */
export type DutyWritten = { type: 'duty.written'; lease: LeaseName; written: number; failed: number; reason: string };

export type LeaderReport = LeaderElected | LeaderLost | LeaderFailed | LeaderResigned;

type Diagram = 'elections' | 'leader' | 'elected-writer';

const rows = (diagram: Diagram, from: string, to: string, types: readonly string[]): CatalogueRow<Diagram>[] =>
  types.map((type) => ({ type, from, to, diagram, seeds: [] }));
const timers = (...names: string[]): string[] => names.map((name) => `timer ${name}`);

const reports: readonly LeaderReport['type'][] = [
  ...(['leader.elected', 'leader.lost', 'leader.failed', 'leader.resigned'] as const),
];

export const leaderCatalogue: readonly CatalogueRow<Diagram>[] = [
  ...rows('elections', 'discovery', 'elections', ['spawn', 'leaders.announce', 'leaders.stand', 'leaders.resign']),
  ...rows('elections', 'elections', 'elections', timers('announceLimit')),
  ...rows('elections', 'elections', 'discovery', ['leaders.announced', 'leaders.resigned']),
  ...rows('leader', 'elections', 'leader-N', ['spawn', 'leader.resign']),
  ...rows('leader', 'leader-N', 'elections', reports),
  ...rows('leader', 'leader-N', 'leader-N/reading', ['spawn']),
  ...rows('leader', 'leader-N', 'leader-N/writing', ['spawn']),
  ...rows('leader', 'leader-N', 'leader-N/finishing', ['spawn']),
  ...rows('leader', 'leader-N', 'leader-N', timers('answerLimit', 'retryInterval', 'lookInterval', 'leaseTime')),
  ...rows('leader', 'leader-N', 'leader-N', timers('renewInterval', 'renewRetry', 'termTime', 'resignLimit')),
  ...rows('leader', 'leader-N', 'elected-writer-*', ['spawn']),
  ...rows('leader', 'elected-writer-*', 'leader-N', ['duty.written']),
  ...rows('elected-writer', 'elected-writer-N', 'elected-writer-N/due', ['spawn']),
  ...rows('elected-writer', 'elected-writer-N/due', 'elected-writer-N', ['duty.due']),
  ...rows('elected-writer', 'elected-writer-N', 'elected-writer-N/writing', ['spawn']),
  ...rows('elected-writer', 'elected-writer-N', 'elected-writer-N', timers('coalescing', 'retryDelay')),
];
