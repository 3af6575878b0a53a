/**
 * Determines the proxies that each change affects and checks their responses: a change that affects the proxy must
 * explain each response, and each effect of a change must arrive at each affected proxy. Pure; the caller passes the
 * time.
 */
import type { Kind } from '../sidecars/xds-types.ts';
import type { Affected, ChangeEffect } from './churn-model.ts';

/** A response this long after its change is late. */
export const lateMs = 10_000;
/** Types whose removals are delayed, together with clusters. */
const kindsWithLag: ReadonlySet<Kind> = new Set(['CDS', 'EDS']);

interface RecordedChange {
  readonly atMs: number;
  readonly affected: Affected;
}

interface ChangeWithEffect extends RecordedChange {
  readonly effect: ChangeEffect;
}

/** Content that each affected proxy must have received by now. */
export interface DueEffect extends ChangeEffect {
  /** Time of the change. */
  readonly sinceMs: number;
  readonly namespaces: ReadonlySet<string>;
}

export interface ResponseExplanation {
  /** Names that no change explains. */
  readonly unexplained: readonly string[];
  /** Names whose last change is too long ago. */
  readonly late: readonly string[];
}

/** Host in a cluster name; `undefined` if the name does not refer to one service. */
const hostIn = (name: string): string | undefined => /^outbound\|\d+\|[^|]*\|(.+)$/.exec(name)?.[1];
const ofMany = '';

export class Oracle {
  /** A removal this long after its change is late. */
  readonly #lateRemovalMs: number;
  /** Changes by host, oldest first. */
  readonly #changes = new Map<string, RecordedChange[]>();
  #due: ChangeWithEffect[] = [];

  /** @param removalLagMs additional time for the removal of a cluster, beyond {@link lateMs} */
  constructor(removalLagMs = 0) {
    this.#lateRemovalMs = lateMs + removalLagMs;
  }

  /** Records a change. */
  recordChange(affected: Affected, atMs: number): void {
    const key = affected.host ?? ofMany;
    const known = (this.#changes.get(key) ?? []).filter((other) => atMs - other.atMs < 4 * this.#lateRemovalMs);
    this.#changes.set(key, [...known, { atMs, affected }]);
    const { effect } = affected;
    if (effect !== undefined) this.#due.push({ atMs, affected, effect });
  }

  /** Whether delayed removals may arrive after the proxy accepted routes. @param acceptedMs time of the acceptance */
  isRemovalDue(acceptedMs: number, nowMs: number): boolean {
    return nowMs - acceptedMs <= this.#lateRemovalMs;
  }

  /** Finds the changes that explain a response to a proxy of the namespace. */
  explain(namespace: string, kind: Kind, news: readonly string[], nowMs: number): ResponseExplanation {
    const unexplained: string[] = [];
    const late: string[] = [];
    const limitMs = kindsWithLag.has(kind) ? this.#lateRemovalMs : lateMs;
    for (const name of news) {
      const atMs = this.#lastOf(namespace, kind, hostIn(name));
      if (atMs === undefined) unexplained.push(name);
      else if (nowMs - atMs > limitMs) late.push(name);
    }
    return { unexplained, late };
  }

  /**
   * Removes and returns the effects that must have arrived by now: of changes older than `lateMs` (for removals plus their lag), or of all changes.
   * Omits changes that another change of the same service may have reverted at about the same time, because the server may merge both.
   */
  takeDue(nowMs: number, ofAll: boolean): DueEffect[] {
    const isRipe = (change: RecordedChange): boolean => ofAll || nowMs - change.atMs >= this.#lateAfterMs(change);
    const ripe = this.#due.filter(isRipe);
    this.#due = this.#due.filter((change) => !isRipe(change));
    return this.#certain(ripe);
  }

  /** Effects of all changes that {@link takeDue} has not taken. */
  get pending(): DueEffect[] {
    return this.#certain(this.#due);
  }

  /** Omits what {@link takeDue} omits. */
  #certain(changes: readonly ChangeWithEffect[]): DueEffect[] {
    return changes.flatMap((change) => {
      const { atMs, affected, effect } = change;
      if (this.#nearTo(change, affected.host ?? ofMany).length > 0) return [];
      const uncertain = new Set(this.#nearTo(change, ofMany).flatMap((other) => [...other.affected.namespaces]));
      const namespaces = new Set([...affected.namespaces].filter((namespace) => !uncertain.has(namespace)));
      return [{ sinceMs: atMs, ...effect, namespaces }];
    });
  }

  #lateAfterMs({ affected }: RecordedChange): number {
    // Clusters that a Sidecar object no longer imports are removed, too.
    const isRemoval = affected.effect?.effectKind === 'removal' || affected.effect === undefined;
    return isRemoval ? this.#lateRemovalMs : lateMs;
  }

  #nearTo(change: RecordedChange, key: string): RecordedChange[] {
    const { atMs, affected } = change;
    return (this.#changes.get(key) ?? []).filter(
      (other) =>
        other.affected !== affected &&
        !(other.affected.isSteady && affected.isSteady) &&
        Math.abs(other.atMs - atMs) <= Math.max(this.#lateAfterMs(change), this.#lateAfterMs(other)),
    );
  }

  /** Any change may explain a name that does not refer to one service. */
  #lastOf(namespace: string, kind: Kind, host: string | undefined): number | undefined {
    const changes =
      host === undefined
        ? [...this.#changes.values()].flat()
        : [...(this.#changes.get(host) ?? []), ...(this.#changes.get(ofMany) ?? [])];
    const times = changes
      .filter(({ affected }) => affected.namespaces.has(namespace) && affected.kinds.has(kind))
      .map(({ atMs }) => atMs);
    return times.length === 0 ? undefined : Math.max(...times);
  }
}
