/** What the supervisor knows of one epoch that it started and that is not over. */
export interface EpochRecord {
  /** Name of the actor, unique among the living: `epoch-1`; `epoch-1b` under the second base id. */
  name: string;
  /** Envoy's --restart-epoch. */
  epoch: number;
  baseId: number;
  /** Port of the admin interface; 0: a free one is chosen when the epoch is prepared. */
  adminPort: number;
  /** Number of the process; 0: there is none yet. */
  pid: number;
  /** Digest of the configuration that it runs. */
  digest: string;
  /** Which Envoy it is: see `binary.changed`. */
  binary: string;
  /** How many ordered restarts (SIGHUP) it has seen: with the digest, what it was started for. */
  orders: number;
  /**
   * `leaving`: a parent that Envoy drains and ends because its child serves. `retiring`: replaced by an Envoy of the other
   * base id, which knows nothing of it: it is drained and ended by us. `unkillable`: SIGKILL does not end it; it counts for
   * nothing, but its base id takes no other Envoy.
   */
  phase: 'starting' | 'live' | 'leaving' | 'retiring' | 'unkillable';
  /** The epoch's parent died before its time: Envoy will block and abort within seconds (spec/envoy-hot-restart.md fact 4). */
  doomed: boolean;
}

/** What should run. */
export interface Desired {
  digest: string;
  orders: number;
  binary: string;
}

/** Epochs in the order of their starts: at most one that leaves or retires, a live one, a starting one; and those that cannot be killed. */
export type Epochs = readonly EpochRecord[];

/** Who of the epochs a report or an order is about. */
export interface NamedEpoch {
  name: string;
}

export const newestOf = (epochs: Epochs): EpochRecord | undefined => epochs.findLast(isKillable);

/** Whether somebody is there to be waited for. */
export const isKillable = ({ phase }: EpochRecord): boolean => phase !== 'unkillable';

/** Whether a base id is blocked by a process that SIGKILL does not end. */
export const isBlocked = (epochs: Epochs, baseId: number): boolean =>
  epochs.some((e) => e.baseId === baseId && !isKillable(e));

/** The epoch that serves: the newest live one. */
export const servingOf = (epochs: Epochs): EpochRecord | undefined => epochs.findLast((e) => e.phase === 'live');

export const withPhase = (epochs: Epochs, { name }: NamedEpoch, phase: EpochRecord['phase']): EpochRecord[] =>
  epochs.map((e) => (e.name === name ? { ...e, phase } : e));

export const withoutEpoch = <Epoch extends NamedEpoch>(epochs: readonly Epoch[], { name }: NamedEpoch): Epoch[] =>
  epochs.filter((e) => e.name !== name);

/** The base ids of one agent: the one that it begins with, and the one to fall back to, where there is one. */
export type BaseIds = readonly number[];

/**
 * The number and the base id of the next epoch: one more than the newest of its base id that lives, 0 when none does.
 * Never skipped, never reused.
 *
 * @param replacing the serving epoch takes no child any more: the next one comes up beside it, under the other base id
 */
export function nextEpochId(
  epochs: Epochs,
  baseIds: BaseIds,
  replacing: boolean,
): Pick<EpochRecord, 'name' | 'epoch' | 'baseId'> {
  const baseId = baseIdOfNext(epochs, baseIds, replacing) ?? baseIds[0] ?? 0;
  const epoch = (epochs.findLast((e) => e.baseId === baseId)?.epoch ?? -1) + 1;
  return { name: `epoch-${epoch}${baseId === baseIds[0] ? '' : 'b'}`, epoch, baseId };
}

/**
 * Where the next epoch of a base id has its admin interface: where its parent has it. The first of a base id has the one that was
 * configured; 0: a free one, for somebody may have taken the one of an earlier time.
 */
export function adminPortOfNext(
  epochs: Epochs,
  baseIds: BaseIds,
  baseId: number,
  { adminPort, spareAdminPort }: { readonly adminPort: number; readonly spareAdminPort: number },
): number {
  const first = baseId === (baseIds[0] ?? 0) ? adminPort : spareAdminPort;
  return epochs.findLast((e) => e.baseId === baseId)?.adminPort ?? first;
}

/** Undefined when each of them is in use by an Envoy that takes no child, or that cannot be killed. */
export function baseIdOfNext(epochs: Epochs, baseIds: BaseIds, replacing: boolean): number | undefined {
  // Where nobody serves, a parent that still drains takes another child; beside one that retires, its base id is not free.
  const beside = servingOf(epochs) ?? epochs.find(isKillable);
  const isTaken = beside?.phase === 'retiring' || (replacing && beside?.phase === 'live');
  const wanted = beside === undefined ? baseIds : [beside.baseId, ...baseIds];
  return wanted.find((baseId) => !isBlocked(epochs, baseId) && !(isTaken && baseId === beside?.baseId));
}
