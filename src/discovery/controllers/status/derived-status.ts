/**
 * Derives statuses of many objects from all objects. Only the leader derives them, once for all changes since the last derivation, so that followers
 * and pushes have no cost.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../../../model/config/config.ts';
import { messageOf } from '../../../runtime/errors.ts';
import { Turns } from '../../../runtime/turns.ts';
import type { Duty, DutyReport, DutyRun } from '../../election/duty.ts';
import type { WriteGate } from '../../election/write-gate.ts';
import { type DesiredStatus, type StatusRef, StatusWriter, type StatusWriterOptions } from './status-writer.ts';

export interface DerivedStatus extends DesiredStatus {
  readonly ref: StatusRef;
  /** A recreated object has an empty status. */
  readonly uid?: string;
  /** Part of the status whose changes are written immediately. */
  readonly facts: unknown;
  /** Part of the status whose changes are written at limited intervals. */
  readonly counts?: unknown;
}

export interface StatusDerivation {
  /** Inputs, compared by identity to detect changes. */
  inputs(): readonly unknown[];
  /** @returns statuses by object key */
  derive(turns: Turns): Promise<ReadonlyMap<string, DerivedStatus>>;
  onChanged(onChanged: () => void): () => void;
}

export interface DerivedStatusOptions extends Omit<StatusWriterOptions, 'source'> {
  readonly derivation: StatusDerivation;
}

/** The delay after a derivation is this multiple of its duration, so that derivations use at most a fifth of a processor. */
const pauseFactor = 4;
const countIntervalMs = 1_000;

export class DerivedStatusDuty implements Duty {
  readonly lease: string;
  readonly #options: DerivedStatusOptions;
  readonly #statusWriter: StatusWriter;
  readonly #now: () => number;
  readonly #startTimer: NonNullable<StatusWriterOptions['schedule']>;
  readonly #watchers = new Set<() => void>();
  #derivedStatuses: ReadonlyMap<string, DerivedStatus> = new Map();
  #inputs: readonly unknown[] = [];
  #pausedUntil = 0;
  #endTimer: (() => void) | undefined;
  derivations = 0;

  constructor(options: DerivedStatusOptions) {
    this.lease = options.lease;
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#startTimer =
      options.schedule ??
      ((ms, callback) => {
        const timer = setTimeout(callback, ms);
        return () => clearTimeout(timer);
      });
    this.#statusWriter = new StatusWriter({
      pauseMs: countIntervalMs,
      // A newer derivation takes precedence over writing statuses of the previous one.
      isInterrupted: () => this.#isDerivationDue,
      ...options,
      source: {
        desiredStatus: ({ kind, namespace, name }) => this.#derivedStatuses.get(`${kind}/${namespace}/${name}`),
        allRefs: () => [...this.#derivedStatuses.values()].map(({ ref }) => ref),
      },
    });
  }

  get counts(): StatusWriter['counts'] {
    return this.#statusWriter.counts;
  }

  watch(onDue: () => void): () => void {
    this.#watchers.add(onDue);
    const stops = [this.#statusWriter.watch(onDue), this.#options.derivation.onChanged(() => this.#notifyWatchers())];
    this.#notifyWatchers();
    return () => {
      for (const stop of stops) stop();
      this.#watchers.delete(onDue);
      if (this.#watchers.size === 0) this.#setTimer(undefined);
    };
  }

  get isDue(): boolean {
    return this.#isDerivationDue || this.#statusWriter.isDue;
  }

  async writeDue(run: DutyRun, writeGate: WriteGate): Promise<DutyReport> {
    if (writeGate.isOpen && this.#isStale && (run.includesAll || this.#isDerivationDue)) {
      const startedAt = this.#now();
      const workTurns = new Turns();
      try {
        await this.#derive(workTurns);
      } catch (error) {
        // This is a bug. The previous results are kept until inputs change.
        this.#options.log.warn('status.notDerived', { reason: messageOf(error) });
      } finally {
        const endedAt = this.#now();
        this.#pausedUntil = endedAt + pauseFactor * Math.max(0, endedAt - startedAt - workTurns.waitedMs);
      }
    }
    const report = await this.#statusWriter.writeDue(run, writeGate);
    this.#notifyWatchers();
    return report;
  }

  #notifyWatchers(): void {
    if (!this.#isStale || this.#watchers.size === 0) return;
    const remainingMs = this.#pausedUntil - this.#now();
    this.#setTimer(remainingMs > 0 ? remainingMs : undefined);
    if (remainingMs <= 0) for (const watcher of this.#watchers) watcher();
  }

  #setTimer(ms: number | undefined): void {
    this.#endTimer?.();
    this.#endTimer = ms === undefined ? undefined : this.#startTimer(ms, () => this.#notifyWatchers());
  }

  get #isDerivationDue(): boolean {
    return this.#isStale && this.#now() >= this.#pausedUntil;
  }

  get #isStale(): boolean {
    const inputs = this.#options.derivation.inputs();
    return inputs.length !== this.#inputs.length || inputs.some((input, index) => input !== this.#inputs[index]);
  }

  async #derive(workTurns: Turns): Promise<void> {
    const { derivation } = this.#options;
    this.#inputs = derivation.inputs();
    this.derivations++;
    const previous = this.#derivedStatuses;
    const derivedStatuses = await derivation.derive(workTurns);
    const changedRefs: StatusRef[] = [];
    const countedRefs: StatusRef[] = [];
    for (const [key, derivedStatus] of derivedStatuses) {
      const previousStatus = previous.get(key);
      if (
        previousStatus === undefined ||
        !hasSameVersion(previousStatus, derivedStatus) ||
        !isDeepStrictEqual(previousStatus.facts, derivedStatus.facts)
      )
        changedRefs.push(derivedStatus.ref);
      else if (!isDeepStrictEqual(previousStatus.counts, derivedStatus.counts)) countedRefs.push(derivedStatus.ref);
      await workTurns.waitIfTurnEnded();
    }
    this.#derivedStatuses = derivedStatuses;
    this.#statusWriter.markDue(changedRefs);
    this.#statusWriter.markDue(countedRefs, { urgent: false });
  }
}

function hasSameVersion(one: DerivedStatus, other: DerivedStatus): boolean {
  return one.generation === other.generation && one.uid === other.uid;
}

export function objectRef({ kind, namespace, name, uid }: Config): Pick<DerivedStatus, 'ref' | 'uid'> {
  return { ref: { kind, namespace, name }, ...(uid !== undefined && { uid }) };
}
