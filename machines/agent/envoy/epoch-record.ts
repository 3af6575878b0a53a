export interface EpochRecord {
  /** System ID of the actor: `epoch-1`; `epoch-1b` under the second base ID. */
  name: string;
  epoch: number;
  baseId: number;
  /** 0 selects a free port when the epoch is prepared. */
  adminPort: number;
  /** The PID is 0 before the process exists. */
  pid: number;
  digest: string;
  binary: string;
  /** Number of restarts that were requested (SIGHUP) before the start of the epoch. */
  orders: number;
  /**
   * A `leaving` parent drains and exits at the request of its child. A `retiring` epoch was replaced by an Envoy of the other base ID; the agent
   * drains and terminates it. SIGKILL has no effect on an `unkillable` epoch, and its base ID cannot be used by another Envoy.
   */
  phase: 'starting' | 'live' | 'leaving' | 'retiring' | 'unkillable';
  /**
   * Whether the epoch is orphaned: its parent exited too early, so Envoy will block, ignore SIGTERM and abort within 15 s
   * (docs/hot-restart-reference.md, fact 4).
   */
  doomed: boolean;
}

export interface DesiredState {
  digest: string;
  orders: number;
  binary: string;
}

/** In start order: at most one leaving or retiring, one live and one starting epoch, and unkillable ones. */
export type Epochs = readonly EpochRecord[];

export interface NamedEpoch {
  name: string;
}

export const newestOf = (epochs: Epochs): EpochRecord | undefined => epochs.findLast(isKillable);

export const isKillable = ({ phase }: EpochRecord): boolean => phase !== 'unkillable';

export const isBaseIdBlocked = (epochs: Epochs, baseId: number): boolean =>
  epochs.some((e) => e.baseId === baseId && !isKillable(e));

export const servingOf = (epochs: Epochs): EpochRecord | undefined => epochs.findLast((e) => e.phase === 'live');

export const withPhase = (epochs: Epochs, { name }: NamedEpoch, phase: EpochRecord['phase']): EpochRecord[] =>
  epochs.map((e) => (e.name === name ? { ...e, phase } : e));

export const removeEpoch = <Epoch extends NamedEpoch>(epochs: readonly Epoch[], { name }: NamedEpoch): Epoch[] =>
  epochs.filter((e) => e.name !== name);

/** The primary base ID, then the spare one if there is one. */
export type BaseIds = readonly number[];

/**
 * Envoy requires consecutive numbers under a base ID, from 0.
 *
 * @param isReplacement whether the serving epoch cannot have a child, so that the next one uses the other base ID
 */
export function nextEpochId(
  epochs: Epochs,
  baseIds: BaseIds,
  isReplacement: boolean,
): Pick<EpochRecord, 'name' | 'epoch' | 'baseId'> {
  const baseId = baseIdOfNext(epochs, baseIds, isReplacement) ?? baseIds[0] ?? 0;
  const epoch = (epochs.findLast((e) => e.baseId === baseId)?.epoch ?? -1) + 1;
  return { name: `epoch-${epoch}${baseId === baseIds[0] ? '' : 'b'}`, epoch, baseId };
}

/** Returns the port of the parent. Without a parent, returns the configured port, or 0 for a free port. */
export function adminPortOfNext(
  epochs: Epochs,
  baseIds: BaseIds,
  baseId: number,
  { adminPort, spareAdminPort }: { readonly adminPort: number; readonly spareAdminPort: number },
): number {
  const portOfBaseId = baseId === (baseIds[0] ?? 0) ? adminPort : spareAdminPort;
  return epochs.findLast((e) => e.baseId === baseId)?.adminPort ?? portOfBaseId;
}

/** `undefined` if each base ID has an Envoy that can neither have a child nor be killed. */
export function baseIdOfNext(epochs: Epochs, baseIds: BaseIds, isReplacement: boolean): number | undefined {
  // If no epoch serves, a draining parent accepts another child. The base ID of a retiring epoch is in use.
  const otherEpoch = servingOf(epochs) ?? epochs.find(isKillable);
  const isBaseIdInUse = otherEpoch?.phase === 'retiring' || (isReplacement && otherEpoch?.phase === 'live');
  const candidates = otherEpoch === undefined ? baseIds : [otherEpoch.baseId, ...baseIds];
  return candidates.find(
    (baseId) => !isBaseIdBlocked(epochs, baseId) && !(isBaseIdInUse && baseId === otherEpoch?.baseId),
  );
}
