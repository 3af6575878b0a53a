/**
 * The status of many objects as a function of the objects there are. It is worked out by whoever leads and writes, once for all that has changed
 * since the last time: a follower, and a push, pay nothing for it. Objects whose status came out as another one are due.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../../../model/config/config.ts';
import { messageOf } from '../../../runtime/errors.ts';
import { Turns } from '../../../runtime/turns.ts';
import type { Duty, DutyReport, DutyRun } from '../../election/duty.ts';
import type { WriteGate } from '../../election/write-gate.ts';
import { type StatusRef, StatusWriter, type StatusWriterOptions, type WantedStatus } from './status-writer.ts';

/** What came out for an object. */
export interface DerivedStatus extends WantedStatus {
  readonly of: StatusRef;
  /** Of the object: the status of one that was deleted and made again is empty, whatever was said of the one before. */
  readonly uid?: string;
  /** What is said, as data: what is another is written at once, */
  readonly facts: unknown;
  /** but for counts, which are written once in a while. */
  readonly counts?: unknown;
}

export interface StatusDerivation {
  /** What it is made of: where one is another object than the last time, the result may be another one. */
  inputs(): readonly unknown[];
  /** In pieces that are short. @returns by key, of all objects that are ours */
  derive(turns: Turns): Promise<ReadonlyMap<string, DerivedStatus>>;
  /** Tells whenever inputs may be others. @returns ends it */
  onChanged(changed: () => void): () => void;
}

export interface DerivedStatusOptions extends Omit<StatusWriterOptions, 'source'> {
  readonly derivation: StatusDerivation;
}

/**
 * Rest after each derivation, in multiples of the time that it worked: derivations take a fifth of a processor at most. A change of any
 * namespace waits that long where another namespace has thousands of routes, so that it is not longer.
 */
const restFactor = 4;
/** Counts of one object. */
const countsRestMs = 1_000;

export class DerivedStatusDuty implements Duty {
  readonly lease: string;
  readonly #options: DerivedStatusOptions;
  readonly #written: StatusWriter;
  readonly #now: () => number;
  readonly #after: NonNullable<StatusWriterOptions['after']>;
  readonly #watchers = new Set<() => void>();
  #derived: ReadonlyMap<string, DerivedStatus> = new Map();
  #inputs: readonly unknown[] = [];
  /** When it may be worked out again. */
  #restsUntil = 0;
  #endTimer: (() => void) | undefined;
  /** How often it was worked out. */
  derivations = 0;

  constructor(options: DerivedStatusOptions) {
    this.lease = options.lease;
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#after =
      options.after ??
      ((ms, then) => {
        const timer = setTimeout(then, ms);
        return () => clearTimeout(timer);
      });
    this.#written = new StatusWriter({
      restMs: countsRestMs,
      // A change is not delayed by the statuses of all objects that were derived before it.
      isInterrupted: () => this.#isDerivationDue,
      ...options,
      source: {
        wanted: ({ kind, namespace, name }) => this.#derived.get(`${kind}/${namespace}/${name}`),
        all: () => [...this.#derived.values()].map(({ of }) => of),
      },
    });
  }

  get counts(): StatusWriter['counts'] {
    return this.#written.counts;
  }

  watch(due: () => void): () => void {
    this.#watchers.add(due);
    const stops = [this.#written.watch(due), this.#options.derivation.onChanged(() => this.#tell())];
    this.#tell();
    return () => {
      for (const stop of stops) stop();
      this.#watchers.delete(due);
      if (this.#watchers.size === 0) this.#setTimer(undefined);
    };
  }

  get isDue(): boolean {
    return this.#isDerivationDue || this.#written.isDue;
  }

  async writeDue(run: DutyRun, gate: WriteGate): Promise<DutyReport> {
    // Who does not lead works nothing out.
    if (gate.isOpen && this.#isStale && (run.anew || this.#isDerivationDue)) {
      const began = this.#now();
      const turns = new Turns();
      try {
        await this.#derive(turns);
      } catch (error) {
        // A bug. What was known before stays, until something is another.
        this.#options.log.warn('status.notDerived', { reason: messageOf(error) });
      } finally {
        const ended = this.#now();
        this.#restsUntil = ended + restFactor * Math.max(0, ended - began - turns.waitedMs);
      }
    }
    const report = await this.#written.writeDue(run, gate);
    // What came while it was worked out waits for the end of the rest.
    this.#tell();
    return report;
  }

  #tell(): void {
    if (!this.#isStale || this.#watchers.size === 0) return;
    const restMs = this.#restsUntil - this.#now();
    this.#setTimer(restMs > 0 ? restMs : undefined);
    if (restMs <= 0) for (const watcher of this.#watchers) watcher();
  }

  #setTimer(ms: number | undefined): void {
    this.#endTimer?.();
    this.#endTimer = ms === undefined ? undefined : this.#after(ms, () => this.#tell());
  }

  get #isDerivationDue(): boolean {
    return this.#isStale && this.#now() >= this.#restsUntil;
  }

  get #isStale(): boolean {
    const inputs = this.#options.derivation.inputs();
    return inputs.length !== this.#inputs.length || inputs.some((input, index) => input !== this.#inputs[index]);
  }

  async #derive(turns: Turns): Promise<void> {
    const { derivation } = this.#options;
    this.#inputs = derivation.inputs();
    this.derivations++;
    const before = this.#derived;
    const now = await derivation.derive(turns);
    const changed: StatusRef[] = [];
    const counted: StatusRef[] = [];
    for (const [key, one] of now) {
      const known = before.get(key);
      if (known === undefined || !isOfSameVersion(known, one) || !isDeepStrictEqual(known.facts, one.facts))
        changed.push(one.of);
      else if (!isDeepStrictEqual(known.counts, one.counts)) counted.push(one.of);
      await turns.rest();
    }
    this.#derived = now;
    this.#written.due(changed);
    this.#written.due(counted, { urgent: false });
  }
}

function isOfSameVersion(one: DerivedStatus, other: DerivedStatus): boolean {
  return one.generation === other.generation && one.uid === other.uid;
}

/** Whose status it is. */
export function ofObject({ kind, namespace, name, uid }: Config): Pick<DerivedStatus, 'of' | 'uid'> {
  return { of: { kind, namespace, name }, ...(uid !== undefined && { uid }) };
}
