/** Each duty has a Lease, and its holder writes. */
import type { CatalogueRow } from '../../catalogue-row.ts';

export type LeaseName = string;

/** discovery → elections. Write the Lease for the presence of this replica: proxies will connect soon. */
export type ReplicaAnnounce = { type: 'replica.announce' };
/** elections → discovery. Other replicas know of this one, or the Lease of this replica was not written within the limit. */
export type ReplicaAnnounced = { type: 'replica.announced' };
/** discovery → elections. The program serves: become a candidate for every duty. */
export type ElectionsJoin = { type: 'elections.join' };
/** discovery → elections. The program exits: give back all Leases. May be sent again; the result is then reported again. */
export type ElectionsResign = { type: 'elections.resign' };
/** elections → discovery. No Lease is held, or the remaining ones will expire. */
export type ElectionsResigned = { type: 'elections.resigned' };

/** elections → leader-N. Give back the Lease and end. */
export type LeaderResign = { type: 'leader.resign' };
/** leader-N → elections. This replica may write. */
export type LeaderElected = { type: 'leader.elected'; lease: LeaseName };
/** leader-N → elections. This replica stops writing and is a candidate again. */
export type LeaderLost = { type: 'leader.lost'; lease: LeaseName; reason: string };
/** leader-N → elections. The Lease could not be read or written; the request is repeated. */
export type LeaderFailed = { type: 'leader.failed'; lease: LeaseName; reason: string };
/** leader-N → elections. The leader has ended. `released`: the Lease was given back, so that other replicas need not wait. */
export type LeaderResigned = { type: 'leader.resigned'; lease: LeaseName; released: boolean };

/** elected-writer-N/due → elected-writer-N. A write is due. */
export type DutyDue = { type: 'duty.due' };
/** elected-writer-N → leader-N. A run has ended. `reason`: of its last failure. */
export type DutyWritten = { type: 'duty.written'; lease: LeaseName; written: number; failed: number; reason: string };

export type LeaderReport = LeaderElected | LeaderLost | LeaderFailed | LeaderResigned;

type Diagram = 'elections' | 'leader' | 'elected-writer';

const catalogueRows = (diagram: Diagram, from: string, to: string, types: readonly string[]): CatalogueRow<Diagram>[] =>
  types.map((type) => ({ type, from, to, diagram, seeds: [] }));
const timers = (...names: string[]): string[] => names.map((name) => `timer ${name}`);

const reports: readonly LeaderReport['type'][] = [
  ...(['leader.elected', 'leader.lost', 'leader.failed', 'leader.resigned'] as const),
];

export const leaderCatalogue: readonly CatalogueRow<Diagram>[] = [
  ...catalogueRows('elections', 'discovery', 'elections', [
    'spawn',
    'replica.announce',
    'elections.join',
    'elections.resign',
  ]),
  ...catalogueRows('elections', 'elections', 'elections', timers('announceLimit')),
  ...catalogueRows('elections', 'elections', 'discovery', ['replica.announced', 'elections.resigned']),
  ...catalogueRows('leader', 'elections', 'leader-N', ['spawn', 'leader.resign']),
  ...catalogueRows('leader', 'leader-N', 'elections', reports),
  ...catalogueRows('leader', 'leader-N', 'leader-N/reading', ['spawn']),
  ...catalogueRows('leader', 'leader-N', 'leader-N/writing', ['spawn']),
  ...catalogueRows('leader', 'leader-N', 'leader-N/finishing', ['spawn']),
  ...catalogueRows(
    'leader',
    'leader-N',
    'leader-N',
    timers('responseLimit', 'retryInterval', 'readInterval', 'leaseTime'),
  ),
  ...catalogueRows('leader', 'leader-N', 'leader-N', timers('renewInterval', 'renewRetry', 'termTime', 'resignLimit')),
  ...catalogueRows('leader', 'leader-N', 'elected-writer-*', ['spawn']),
  ...catalogueRows('leader', 'elected-writer-*', 'leader-N', ['duty.written']),
  ...catalogueRows('elected-writer', 'elected-writer-N', 'elected-writer-N/due', ['spawn']),
  ...catalogueRows('elected-writer', 'elected-writer-N/due', 'elected-writer-N', ['duty.due']),
  ...catalogueRows('elected-writer', 'elected-writer-N', 'elected-writer-N/writing', ['spawn']),
  ...catalogueRows('elected-writer', 'elected-writer-N', 'elected-writer-N', timers('coalescing', 'retryDelay')),
];
