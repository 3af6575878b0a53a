/** What the supervisor knows of one epoch that it started and that is not over. */
export interface EpochRecord {
  epoch: number;
  /** Digest of the configuration that it runs. */
  digest: string;
  /** How many ordered restarts (SIGHUP) it has seen: with the digest, what it was started for. */
  orders: number;
  phase: 'starting' | 'live' | 'leaving';
}

/** What should run. */
export interface Desired {
  digest: string;
  orders: number;
}

/** Oldest first; at most a leaving parent, a live epoch, a starting child. */
export type Epochs = readonly EpochRecord[];

export const newestOf = (epochs: Epochs): EpochRecord | undefined => epochs.at(-1);

/** The epoch that serves: the newest live one. */
export const servingOf = (epochs: Epochs): EpochRecord | undefined => epochs.findLast((e) => e.phase === 'live');

/** The number of the next epoch: one more than the newest that lives, 0 when none does. Never skipped, never reused. */
export const nextEpoch = (epochs: Epochs): number => (newestOf(epochs)?.epoch ?? -1) + 1;

export const withPhase = (epochs: Epochs, epoch: number, phase: EpochRecord['phase']): EpochRecord[] =>
  epochs.map((e) => (e.epoch === epoch ? { ...e, phase } : e));

export const without = (epochs: Epochs, epoch: number): EpochRecord[] => epochs.filter((e) => e.epoch !== epoch);
