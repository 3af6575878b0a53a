/**
 * Decides when deletions of a source over xDS apply. A source that has just started may send an empty state because its caches are not filled yet.
 */

export interface PausedKind {
  readonly kind: string;
  readonly objects: number;
  /** Whether the response arrived on the current stream. */
  readonly isConfirmed: boolean;
}

export interface Removal {
  readonly kind: string;
  readonly known: number;
  readonly removed: number;
}

/** Fewer deletions are not suspicious, unless all objects are deleted. */
export const minSuspiciousDeletions = 20;

export function isSuspicious({ known, removed }: Removal): boolean {
  return removed > 0 && (removed === known || (removed >= minSuspiciousDeletions && removed > known / 2));
}

/**
 * A paused kind stays paused until a response deletes nothing, because a source that fills its caches gradually would otherwise delete objects that
 * it has not read yet.
 */
export function shouldPauseDeletions(removal: Removal, pausedKinds: readonly PausedKind[], isYoung: boolean): boolean {
  if (removal.removed === 0) return false;
  return pausedKinds.some(({ kind }) => kind === removal.kind) || (isYoung && isSuspicious(removal));
}

export function pausedKindsAfter(removal: Removal, pausedKinds: readonly PausedKind[], isYoung: boolean): PausedKind[] {
  const unaffectedKinds = pausedKinds.filter(({ kind }) => kind !== removal.kind);
  if (!shouldPauseDeletions(removal, pausedKinds, isYoung)) return unaffectedKinds;
  return [...unaffectedKinds, { kind: removal.kind, objects: removal.removed, isConfirmed: true }];
}
