/**
 * When deletions of a source over xDS apply. A source that has just started may send an empty state because its caches are not filled yet;
 * a response that deletes most objects of a kind on a young stream is therefore not believed at once (spec/config-over-xds.md §5.3).
 */

/** A kind whose deletions are paused. */
export interface PausedKind {
  readonly kind: string;
  /** Objects that the last response deletes. */
  readonly objects: number;
  /** The stream that is open now has sent that; else an earlier one did. */
  readonly isConfirmed: boolean;
}

/** What a response means to the objects that apply. */
export interface Removal {
  readonly kind: string;
  /** Objects of the kind that apply. */
  readonly known: number;
  /** Those of them that the response deletes. */
  readonly removed: number;
}

/** Fewer deletions than this are not suspicious, unless nothing is left. */
export const minSuspiciousDeletions = 20;

/** Whether a response on a young stream deletes all objects of a kind, or 20 and more than half of them. */
export function isSuspicious({ known, removed }: Removal): boolean {
  return removed > 0 && (removed === known || (removed >= minSuspiciousDeletions && removed > known / 2));
}

/**
 * Whether the deletions of a response wait. A kind whose deletions are paused stays so until a response deletes nothing: a source that fills
 * its caches step by step would otherwise delete what it has not read yet.
 */
export function pausesDeletions(removal: Removal, paused: readonly PausedKind[], isYoung: boolean): boolean {
  if (removal.removed === 0) return false;
  return paused.some(({ kind }) => kind === removal.kind) || (isYoung && isSuspicious(removal));
}

/** The paused kinds after a response. */
export function pausedAfter(removal: Removal, paused: readonly PausedKind[], isYoung: boolean): PausedKind[] {
  const others = paused.filter(({ kind }) => kind !== removal.kind);
  if (!pausesDeletions(removal, paused, isYoung)) return others;
  return [...others, { kind: removal.kind, objects: removal.removed, isConfirmed: true }];
}
