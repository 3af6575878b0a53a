/**
 * State that an agent leaves for its successor: records of the Envoys that it started. A killed or replaced agent leaves these running, and the next
 * agent of the same container adopts them.
 */

import type { HandOver, RestartDecided } from '../protocol.ts';
import type { EpochInput } from './epoch-context.ts';
import type { Desired, EpochRecord } from './epoch-record.ts';

/** State of the supervisor that outlives the agent. Other state is rebuilt: certificates are read again, and budgets are reset. */
export interface PersistedState {
  desired: Desired;
  epochs: EpochRecord[];
  recovery: 'none' | 'repair' | 'replace';
  provenDigest: string;
  provenBinary: string;
  /** Absent if no start is in progress. */
  restart?: Omit<RestartDecided, 'type'>;
}

export interface AdoptedEpoch extends EpochRecord {
  configFile: string;
  /** Time since the epoch entered its phase. */
  elapsedMs: number;
  /** Time when its start was ordered, on the host's clock. */
  startedAtMs: number;
  /** For a draining parent: upper bound of the time that its child was live before the probe detected it. */
  unseenMs: number;
}

/**
 * State with which an agent starts if another one left Envoys. `handOver`: that agent released them (`granted`), or this agent resumes control
 * (`taken back`); absent if the other agent was killed.
 */
export interface Adoption extends Omit<PersistedState, 'epochs' | 'desired'> {
  desired: Desired;
  epochs: AdoptedEpoch[];
  handOver?: HandOver;
}

/**
 * Base IDs of an agent. `adoption`: running Envoys under them that another agent started. `isAnothers`: another agent of this container
 * claimed them first, and keeps its Envoys; there are no base IDs.
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

/** Remaining parent-shutdown time of a draining or retiring epoch, from the detection of its live replacement. */
export const remainingParentShutdownMs = ({ elapsedMs }: AdoptedEpoch, parentShutdownMs: number): number =>
  Math.max(0, parentShutdownMs - elapsedMs);

/** The epoch that was starting, or whose start was aborted. It is adopted after all others. */
export const candidateAmong = (adoptedEpochs: readonly AdoptedEpoch[]): AdoptedEpoch | undefined =>
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

/** The start that continues after the adoption. `undefined` if its end was already reported and its Envoy only has to be killed. */
export const ongoingRestartOf = ({ epochs, restart }: Adoption): Omit<RestartDecided, 'type'> | undefined =>
  candidateAmong(epochs)?.name === restart?.name ? restart : undefined;

/** Input of an adopted epoch, which is neither prepared nor started. */
export function adoptedEpochInput(
  adoptedEpoch: AdoptedEpoch,
  settings: Pick<EpochInput, 'parentGraceMs' | 'healthyMs'>,
): EpochInput {
  const { name, epoch, baseId, adminPort, binary, configFile, phase, startedAtMs } = adoptedEpoch;
  const { parentGraceMs, healthyMs } = settings;
  const live = phase !== 'starting';
  return {
    ...{ name, epoch, baseId, adminPort, binary, parentGraceMs, healthyMs },
    ...{ validate: false, certificates: null, adopted: { configFile, live, startedAtMs } },
  };
}
