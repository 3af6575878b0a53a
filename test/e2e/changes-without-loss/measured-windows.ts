/**
 * Counts requests in windows of one or more changes. If requests fail in a window in which the control plane waited for a processor longer than the
 * limit of make before break, the window is discarded and its changes are repeated, because the limit ends the wait for proxies. All other failures
 * count.
 */
import type { LoadReport, NameReport } from '../../load/report.ts';

export interface WindowSources {
  readonly report: () => Promise<Pick<LoadReport, 'byName'>>;
  /** How long the control plane has waited for a processor so far, in milliseconds. */
  readonly waitedMs: () => number;
  /** Waits until requests of the window have ended and every proxy has acknowledged its changes. */
  readonly settle: () => Promise<void>;
  /** Reports a discarded window. */
  readonly log: (line: string) => void;
}

/** Default limit of make before break in the control plane, in milliseconds. */
export const makeBeforeBreakLimitMs = 5_000;
/** Maximum number of discarded windows in a run. On a machine that stalls more often no result is possible. */
const maxRepeated = 20;

type Counts = Readonly<Record<string, NameReport>>;

export class MeasuredWindows {
  readonly #sources: WindowSources;
  readonly #counts = new Map<string, { total: number; failed: number; reasons: Record<string, number> }>();
  #changes = 0;
  #discardedCount = 0;

  constructor(sources: WindowSources) {
    this.#sources = sources;
  }

  /** Number of changes in the windows that count. */
  get changes(): number {
    return this.#changes;
  }

  /** Number of discarded windows. */
  get repeated(): number {
    return this.#discardedCount;
  }

  /** Requests in the windows that count, by name. */
  get byName(): Counts {
    return Object.fromEntries(this.#counts);
  }

  /**
   * Repeats changes until they are measured.
   * @param changes number of changes that `make` applies
   * @throws Error if too many windows of the run were discarded
   */
  async measure(changes: number, applyChanges: () => Promise<void>): Promise<void> {
    while (!(await this.#isMeasured(changes, applyChanges))) {
      this.#discardedCount++;
      if (this.#discardedCount > maxRepeated)
        throw new Error(`${this.#discardedCount} windows were not measured: the control plane gets no processor`);
    }
  }

  async #isMeasured(changes: number, applyChanges: () => Promise<void>): Promise<boolean> {
    const { report, waitedMs, settle, log } = this.#sources;
    const [previous, waitedBefore] = [(await report()).byName, waitedMs()];
    await applyChanges();
    const isStalled = (): boolean => waitedMs() - waitedBefore > makeBeforeBreakLimitMs;
    if (isStalled()) await settle();
    const window = difference(previous, (await report()).byName);
    const failedCount = Object.values(window).reduce((sum, one) => sum + one.failed, 0);
    if (failedCount > 0 && isStalled()) {
      const waited = ((waitedMs() - waitedBefore) / 1_000).toFixed(1);
      log(
        `not measured: ${changes} changes, ${failedCount} requests failed, the control plane waited ${waited} s for a processor`,
      );
      return false;
    }
    this.#add(window);
    this.#changes += changes;
    return true;
  }

  #add(window: Counts): void {
    for (const [name, { total, failed, reasons }] of Object.entries(window)) {
      const sum = this.#counts.get(name) ?? { total: 0, failed: 0, reasons: {} };
      this.#counts.set(name, sum);
      sum.total += total;
      sum.failed += failed;
      for (const [reason, count] of Object.entries(reasons)) sum.reasons[reason] = (sum.reasons[reason] ?? 0) + count;
    }
  }
}

function difference(previous: Counts, next: Counts): Counts {
  return Object.fromEntries(
    Object.entries(next).map(([name, { total, failed, reasons }]) => {
      const previousCounts = previous[name];
      const addedReasons = Object.entries(reasons).map(
        ([reason, count]) => [reason, count - (previousCounts?.reasons[reason] ?? 0)] as const,
      );
      const newReasons = Object.fromEntries(addedReasons.filter(([, count]) => count > 0));
      return [
        name,
        {
          total: total - (previousCounts?.total ?? 0),
          failed: failed - (previousCounts?.failed ?? 0),
          reasons: newReasons,
        },
      ];
    }),
  );
}
