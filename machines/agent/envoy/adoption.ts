/**
 * What an agent leaves for the one after it: which Envoys it has started and what it thought of them. Killed, or giving way to a newer one, it
 * leaves them running, and the next agent of the same container takes them over. Pure.
 */

import type { HandOver, RestartDecided } from '../protocol.ts';
import type { EpochInput } from './epoch-context.ts';
import type { Desired, EpochRecord } from './epoch-record.ts';

/** What of the supervisor's knowledge outlives it. All else is learned again: certificates are read, budgets begin anew. */
export interface PersistedState {
  desired: Desired;
  epochs: EpochRecord[];
  recovery: 'none' | 'repair' | 'replace';
  provenDigest: string;
  provenBinary: string;
  /** The start that is under way; absent between starts. */
  restart?: Omit<RestartDecided, 'type'>;
}

/** An Envoy that another agent has started. */
export interface AdoptedEpoch extends EpochRecord {
  /** The bootstrap that it runs. */
  configFile: string;
  /** How long the epoch has been in its phase. */
  elapsedMs: number;
  /** When its start was ordered, by the clock of the host. */
  startedAtMs: number;
  /** How long the child of an epoch that leaves may have been live before that was seen. */
  unseenMs: number;
}

/**
 * What an agent starts with where another one has left Envoys. `handOver`: the previous agent has handed them over (`granted`), or
 * this agent had handed them over and takes them back (`taken back`). Absent: the previous agent was killed.
 */
export interface Adoption extends Omit<PersistedState, 'epochs' | 'desired'> {
  desired: Desired;
  epochs: AdoptedEpoch[];
  handOver?: HandOver;
}

/**
 * The base ids of an agent. `adoption`: Envoys that an agent before this one has started, and that outlived it, under these. `isAnothers`: it
 * has none, as another agent of this container was quicker, and goes on with what runs.
 */
export interface ClaimedIds {
  baseIds: number[];
  sweptFiles: string[];
  adoption?: Adoption;
  isAnothers?: true;
}

type PersistableState = Omit<PersistedState, 'restart'> & { restart: PersistedState['restart'] | undefined };

export const persistedStateOf = (context: PersistableState): PersistedState => {
  const { desired, epochs, recovery, provenDigest, provenBinary, restart } = context;
  return { desired, epochs, recovery, provenDigest, provenBinary, ...(restart && { restart }) };
};

/** What is left of the parent-shutdown time of one that leaves, or retires: it runs since another one was seen to be live in its place. */
export const remainingParentShutdownMs = ({ elapsedMs }: AdoptedEpoch, parentShutdownMs: number): number =>
  Math.max(0, parentShutdownMs - elapsedMs);

/** The one that is still on its way to live, or was given up on it: it is taken over when all others have been. */
export const candidateAmong = (adopted: readonly AdoptedEpoch[]): AdoptedEpoch | undefined =>
  adopted.find(({ phase }) => phase === 'starting');

/** The record of an epoch, without what only its adoption needs. */
export function epochRecordOf({
  configFile: _,
  startedAtMs: __,
  elapsedMs: ___,
  unseenMs: ____,
  ...record
}: AdoptedEpoch): EpochRecord {
  return record;
}

/** A start that was under way, and goes on. Undefined also where it was told as over, and its Envoy was to be killed. */
export const ongoingRestartOf = ({ epochs, restart }: Adoption): Omit<RestartDecided, 'type'> | undefined =>
  candidateAmong(epochs)?.name === restart?.name ? restart : undefined;

/** Input of an adopted epoch, which is neither prepared nor started: it runs. */
export function adoptedEpochInput(
  adopted: AdoptedEpoch,
  settings: Pick<EpochInput, 'parentGraceMs' | 'healthyMs'>,
): EpochInput {
  const { name, epoch, baseId, adminPort, binary, configFile, phase, startedAtMs } = adopted;
  const { parentGraceMs, healthyMs } = settings;
  const live = phase !== 'starting';
  return {
    ...{ name, epoch, baseId, adminPort, binary, parentGraceMs, healthyMs },
    ...{ validate: false, certificates: null, adopted: { configFile, live, startedAtMs } },
  };
}
