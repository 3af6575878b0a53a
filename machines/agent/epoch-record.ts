/** What the supervisor knows of one epoch that it started and that is not over. */
export interface EpochRecord {
  /** Of the actor, unique among the living: `epoch-1`; `epoch-1b` under the second base id. */
  name: string;
  /** Envoy's --restart-epoch. */
  epoch: number;
  baseId: number;
  /** Digest of the configuration that it runs. */
  digest: string;
  /** How many ordered restarts (SIGHUP) it has seen: with the digest, what it was started for. */
  orders: number;
  /**
   * `leaving`: a parent that Envoy drains and ends because its child serves. `retiring`: replaced by an Envoy of the other
   * base id, which knows nothing of it: it is drained and ended by us.
   */
  phase: 'starting' | 'live' | 'leaving' | 'retiring';
  /** Its parent died before its time: it will block and abort within seconds (spec/envoy-hot-restart.md fact 4). */
  doomed: boolean;
}

/** What should run. */
export interface Desired {
  digest: string;
  orders: number;
}

/** In the order of their starts: at most one that leaves or retires, a live one, a starting one. */
export type Epochs = readonly EpochRecord[];

/** Who of the epochs a report or an order is about. */
export interface Named {
  name: string;
}

export const newestOf = (epochs: Epochs): EpochRecord | undefined => epochs.at(-1);

/** The epoch that serves: the newest live one. */
export const servingOf = (epochs: Epochs): EpochRecord | undefined => epochs.findLast((e) => e.phase === 'live');

export const withPhase = (epochs: Epochs, { name }: Named, phase: EpochRecord['phase']): EpochRecord[] =>
  epochs.map((e) => (e.name === name ? { ...e, phase } : e));

export const without = (epochs: Epochs, { name }: Named): EpochRecord[] => epochs.filter((e) => e.name !== name);

/** The base ids of one agent: the one that it begins with, and the one to fall back to, where there is one. */
export type BaseIds = readonly number[];

/**
 * The number and the base id of the next epoch: one more than the newest of its base id that lives, 0 when none does.
 * Never skipped, never reused.
 *
 * @param replacing the serving epoch takes no child any more: the next one comes up beside it, under the other base id
 */
export function nextEpoch(
  epochs: Epochs,
  baseIds: BaseIds,
  replacing: boolean,
): Pick<EpochRecord, 'name' | 'epoch' | 'baseId'> {
  const baseId = baseIdOfNext(epochs, baseIds, replacing);
  const epoch = (epochs.findLast((e) => e.baseId === baseId)?.epoch ?? -1) + 1;
  return { name: `epoch-${epoch}${baseId === baseIds[0] ? '' : 'b'}`, epoch, baseId };
}

function baseIdOfNext(epochs: Epochs, baseIds: BaseIds, replacing: boolean): number {
  const other = (baseId: number): number => baseIds.find((candidate) => candidate !== baseId) ?? baseId;
  const serving = servingOf(epochs);
  if (serving !== undefined) return replacing ? other(serving.baseId) : serving.baseId;
  // Nobody serves. A parent that still drains takes another child; beside one that retires, its base id is not free.
  const [left] = epochs;
  if (left !== undefined) return left.phase === 'retiring' ? other(left.baseId) : left.baseId;
  return baseIds[0] ?? 0;
}
