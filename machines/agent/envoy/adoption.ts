/** A killed or replaced agent leaves its Envoys running with this state, and the next agent of the same container adopts them. */

import type { HandOver, RestartDecided } from '../protocol.ts';
import type { EpochInput } from './epoch-context.ts';
import type { DesiredState, EpochRecord } from './epoch-record.ts';

/** Other state of the supervisor is rebuilt: certificates are read again, and budgets are reset. */
export interface PersistedState {
  desired: DesiredState;
  epochs: EpochRecord[];
  recovery: 'none' | 'repair' | 'replace';
  provenDigest: string;
  provenBinary: string;
  /** Absent if no start is in progress. */
  restart?: Omit<RestartDecided, 'type'>;
}

export interface AdoptedEpoch extends EpochRecord {
  configFile: string;
  elapsedMs: number;
  /** Time when the start was ordered, on the host's clock. */
  startedAtMs: number;
  /** Upper bound of the time that the child of a draining parent was live before the probe detected it. */
  unseenMs: number;
}

/**
 * `handOver` is `granted` if the other agent released its Envoys, `taken back` if this agent resumes control, and absent if the other agent was
 * killed.
 */
export interface Adoption extends Omit<PersistedState, 'epochs' | 'desired'> {
  desired: DesiredState;
  epochs: AdoptedEpoch[];
  handOver?: HandOver;
}

/** If `isAnothers`, another agent of this container claimed the base IDs first, and keeps its Envoys. */
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

/** `elapsedMs` counts from the time when the live replacement of the draining or retiring epoch was detected. */
export const remainingParentShutdownMs = ({ elapsedMs }: AdoptedEpoch, parentShutdownMs: number): number =>
  Math.max(0, parentShutdownMs - elapsedMs);

/** The start of this epoch was in progress or was aborted. It is adopted after all others. */
export const findCandidate = (adoptedEpochs: readonly AdoptedEpoch[]): AdoptedEpoch | undefined =>
  adoptedEpochs.find(({ phase }) => phase === 'starting');

export function epochRecordOf({
  configFile: _,
  startedAtMs: __,
  elapsedMs: ___,
  unseenMs: ____,
  ...record
}: AdoptedEpoch): EpochRecord {
  return record;
}

/** `undefined` if the outcome of the start was already reported: then the Envoy is only killed. */
export const ongoingRestartOf = ({ epochs, restart }: Adoption): Omit<RestartDecided, 'type'> | undefined =>
  findCandidate(epochs)?.name === restart?.name ? restart : undefined;

export function adoptedEpochInput(
  adoptedEpoch: AdoptedEpoch,
  settings: Pick<EpochInput, 'parentGraceMs' | 'healthyMs'>,
): EpochInput {
  const { name, epoch, baseId, adminPort, binary, configFile, phase, startedAtMs } = adoptedEpoch;
  const { parentGraceMs, healthyMs } = settings;
  const isLive = phase !== 'starting';
  return {
    ...{ name, epoch, baseId, adminPort, binary, parentGraceMs, healthyMs },
    ...{ validate: false, certificates: null, adopted: { configFile, live: isLive, startedAtMs } },
  };
}
