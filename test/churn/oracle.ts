/**
 * Which proxies each change concerns, and whether they were told: what a proxy is sent must be explained by a change that
 * concerns it, and what a change brings must have come to each proxy that it concerns. Pure; times are the caller's.
 */
import type { Kind } from '../sidecars/xds-types.ts';
import type { Affected, Brought } from './churn-model.ts';

/** What comes so long after the change that explains it is late. */
export const lateMs = 10_000;
/** Types of which resources are removed later than others, with clusters. */
const kindsWithLag: ReadonlySet<Kind> = new Set(['CDS', 'EDS']);

interface Happened {
  readonly atMs: number;
  readonly affected: Affected;
}

/** What each proxy that a change concerns must have been sent by now. */
export interface DueNews extends Brought {
  /** When the change was made. */
  readonly sinceMs: number;
  readonly namespaces: ReadonlySet<string>;
}

export interface Explanation {
  /** Names that no change explains to this proxy. */
  readonly unexplained: readonly string[];
  /** Names whose last change is long ago. */
  readonly late: readonly string[];
}

/** The host in a cluster's name; undefined: it is not about one service. */
const hostIn = (name: string): string | undefined => /^outbound\|\d+\|[^|]*\|(.+)$/.exec(name)?.[1];
const ofMany = '';

export class Oracle {
  /** What is removed so long after its change is late. */
  readonly #lateRemovalMs: number;
  /** By host, oldest first. */
  readonly #changes = new Map<string, Happened[]>();
  #due: (Happened & { readonly brings: NonNullable<Affected['brings']> })[] = [];

  /** @param removalLagMs a cluster may be removed so long after its change, beyond {@link lateMs} */
  constructor(removalLagMs = 0) {
    this.#lateRemovalMs = lateMs + removalLagMs;
  }

  /** A change is made now. */
  changed(affected: Affected, atMs: number): void {
    const key = affected.host ?? ofMany;
    const known = (this.#changes.get(key) ?? []).filter((other) => atMs - other.atMs < 4 * this.#lateRemovalMs);
    this.#changes.set(key, [...known, { atMs, affected }]);
    const { brings } = affected;
    if (brings !== undefined) this.#due.push({ atMs, affected, brings });
  }

  /** Whether a proxy may be sent removals that had to wait until it accepted routes. @param acceptedMs when it did */
  isRemovalDue(acceptedMs: number, nowMs: number): boolean {
    return nowMs - acceptedMs <= this.#lateRemovalMs;
  }

  /** Why a proxy of the namespace was sent these. */
  explain(namespace: string, kind: Kind, news: readonly string[], nowMs: number): Explanation {
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
   * Takes out what must have come by now: of changes as old as `lateMs` (of removals, and their lag), or of all of them. Changes that are
   * near to one of the same service that may have undone them are left out: to the server both may be one.
   */
  takeDue(nowMs: number, ofAll: boolean): DueNews[] {
    const isRipe = (change: Happened): boolean => ofAll || nowMs - change.atMs >= this.#lateAfterMs(change);
    const ripe = this.#due.filter(isRipe);
    this.#due = this.#due.filter((change) => !isRipe(change));
    return ripe.flatMap((change) => {
      const { atMs, affected, brings } = change;
      if (this.#nearTo(change, affected.host ?? ofMany).length > 0) return [];
      const blurred = new Set(this.#nearTo(change, ofMany).flatMap((other) => [...other.affected.namespaces]));
      const namespaces = new Set([...affected.namespaces].filter((namespace) => !blurred.has(namespace)));
      return [{ sinceMs: atMs, ...brings, namespaces }];
    });
  }

  #lateAfterMs({ affected }: Happened): number {
    // What a Sidecar object no longer shows is removed as well.
    const isRemoval = affected.brings?.how === 'removal' || affected.brings === undefined;
    return isRemoval ? this.#lateRemovalMs : lateMs;
  }

  #nearTo(change: Happened, key: string): Happened[] {
    const { atMs, affected } = change;
    return (this.#changes.get(key) ?? []).filter(
      (other) =>
        other.affected !== affected &&
        !(other.affected.isSteady && affected.isSteady) &&
        Math.abs(other.atMs - atMs) <= Math.max(this.#lateAfterMs(change), this.#lateAfterMs(other)),
    );
  }

  /** Of a name that is not about one service any change may be the reason. */
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
