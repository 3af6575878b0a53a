import { failedStart, gaveUp } from '../../runtime/findings/run-end.ts';
import { count, spoken, text } from '../../runtime/findings/words.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { StateTags } from '../trace/state-tags.ts';
import type { RuleRun, Run, Verdict, VerdictRule } from './finding.ts';
import { isRootEnd } from './program-end.ts';
import { Serving, servingEvents } from './serving.ts';

/** Consecutive failed starts until a start succeeded or the agent gave up. */
export const failedTriesRule: VerdictRule = {
  name: 'failed tries',
  reads: { events: [...servingEvents, 'epoch.failed', 'epoch.live'], kinds: ['transition', 'stop'] },
  begin: () => new FailedTriesRun(),
};

class FailedTriesRun implements RuleRun {
  readonly #serving = new Serving();
  /** Indexes of the failures since an Envoy was last live. */
  #failures: number[] = [];
  /** Reasons of the first and of the last failure, which often differ. */
  #first = '';
  #last = '';
  #toldGivenUp = false;
  #tags: StateTags | undefined;

  take(record: TraceRecord, index: number, run: Run): Verdict[] | undefined {
    this.#serving.take(record, index);
    if (record.kind === 'event') return this.#event(record, index);
    if (record.kind === 'transition') return this.#transition(record, index, run);
    if (record.kind === 'stop') return this.#stop(record, index, run);
    return undefined;
  }

  #event(record: TraceRecord & { kind: 'event' }, index: number): Verdict[] | undefined {
    const { event } = record;
    const failed = failedStart(record);
    if (failed !== undefined) {
      this.#failures.push(index);
      this.#last = failed;
      if (this.#failures.length === 1) this.#first = failed;
      return undefined;
    }
    if (event.type !== 'epoch.live') return undefined;
    const failures = this.#failures;
    this.#failures = [];
    this.#toldGivenUp = false;
    if (failures.length === 0) return undefined;
    return [
      this.#verdict(
        'note',
        `${spoken(text(event.name))} is live after ${count(failures.length, 'failed attempt')}; ${this.#reasons()}`,
        index,
        failures,
      ),
    ];
  }

  #transition({ actor, to }: TraceRecord & { kind: 'transition' }, index: number, run: Run): Verdict[] | undefined {
    if (actor !== 'supervisor' || this.#toldGivenUp) return undefined;
    this.#tags ??= new StateTags(run.header.machines);
    if (!this.#tags.of(actor, to).has('retries exhausted')) return undefined;
    this.#toldGivenUp = true;
    const who = this.#serving.name === undefined ? 'no Envoy serves' : `${spoken(this.#serving.name)} still serves`;
    return [
      this.#verdict(
        'bad',
        `retries exhausted after ${count(this.#failures.length, 'attempt')}; ${this.#reasons()}; ${who}`,
        index,
        this.#failures,
      ),
    ];
  }

  /** The agent exits without an order to stop. */
  #stop(record: TraceRecord & { kind: 'stop' }, index: number, run: Run): Verdict[] | undefined {
    if (!isRootEnd(record, run) || this.#failures.length === 0) return undefined;
    return [this.#verdict('bad', gaveUp(this.#failures.length, this.#last), index, this.#failures)];
  }

  #reasons(): string {
    const last = `last failure while ${this.#last}`;
    return this.#first === this.#last ? last : `first failure while ${this.#first}; ${last}`;
  }

  #verdict(weight: Verdict['weight'], sentence: string, index: number, failures: readonly number[]): Verdict {
    const [root] = failures;
    return {
      rule: 'failed tries',
      weight,
      sentence,
      index,
      range: [root ?? index, index],
      ...(root !== undefined && { root }),
    };
  }
}
