import { failedStartReason, isRetriesExhausted, retriesExhaustedSentence } from '../../runtime/findings/run-end.ts';
import { actorText, count, text } from '../../runtime/findings/words.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { StateTags } from '../trace/state-tags.ts';
import type { Finding, FindingRule, RuleRun, Run } from './finding.ts';
import { isRootEnd } from './program-end.ts';
import { Serving, servingEvents } from './serving.ts';

/** Consecutive failed starts until a start succeeded or the agent gave up. */
export const failedStartsRule: FindingRule = {
  name: 'failed tries',
  reads: { events: [...servingEvents, 'epoch.failed', 'epoch.live'], kinds: ['transition', 'stop'] },
  begin: () => new FailedStartsRun(),
};

class FailedStartsRun implements RuleRun {
  readonly #servingState = new Serving();
  /** Indexes of the failures since an Envoy was last live. */
  #failures: number[] = [];
  /** The reasons of the first and of the last failure often differ. */
  #firstReason = '';
  #lastReason = '';
  #hasReportedGivingUp = false;
  #isRetriesExhausted = false;
  #tags: StateTags | undefined;

  onRecord(record: TraceRecord, index: number, run: Run): Finding[] | undefined {
    this.#servingState.addRecord(record, index);
    if (record.kind === 'event') return this.#event(record, index);
    if (record.kind === 'transition') return this.#transition(record, index, run);
    if (record.kind === 'stop') return this.#stop(record, index, run);
    return undefined;
  }

  #event(record: TraceRecord & { kind: 'event' }, index: number): Finding[] | undefined {
    const { event } = record;
    const failedRecord = failedStartReason(record);
    if (failedRecord !== undefined) {
      this.#failures.push(index);
      this.#lastReason = failedRecord;
      if (this.#failures.length === 1) this.#firstReason = failedRecord;
      return undefined;
    }
    if (event.type !== 'epoch.live') return undefined;
    const failures = this.#failures;
    this.#failures = [];
    this.#hasReportedGivingUp = false;
    if (failures.length === 0) return undefined;
    return [
      this.#finding(
        'note',
        `${actorText(text(event.name))} is live after ${count(failures.length, 'failed attempt')}; ${this.#reasons()}`,
        index,
        failures,
      ),
    ];
  }

  #transition({ actor, to }: TraceRecord & { kind: 'transition' }, index: number, run: Run): Finding[] | undefined {
    if (actor !== 'supervisor' || this.#hasReportedGivingUp) return undefined;
    this.#tags ??= new StateTags(run.header.machines);
    if (!this.#tags.tagsOf(actor, to).has('retries exhausted')) return undefined;
    this.#hasReportedGivingUp = true;
    const servingText =
      this.#servingState.name === undefined ? 'no Envoy serves' : `${actorText(this.#servingState.name)} still serves`;
    return [
      this.#finding(
        'bad',
        `retries exhausted after ${count(this.#failures.length, 'attempt')}; ${this.#reasons()}; ${servingText}`,
        index,
        this.#failures,
      ),
    ];
  }

  /** Reports the exit of an agent that has exhausted its retries. */
  #stop(record: TraceRecord & { kind: 'stop' }, index: number, run: Run): Finding[] | undefined {
    if (isRetriesExhausted(record)) this.#isRetriesExhausted = true;
    if (!isRootEnd(record, run) || !this.#isRetriesExhausted || this.#failures.length === 0) return undefined;
    return [
      this.#finding('bad', retriesExhaustedSentence(this.#failures.length, this.#lastReason), index, this.#failures),
    ];
  }

  #reasons(): string {
    const lastText = `last failure while ${this.#lastReason}`;
    return this.#firstReason === this.#lastReason ? lastText : `first failure while ${this.#firstReason}; ${lastText}`;
  }

  #finding(weight: Finding['weight'], sentence: string, index: number, failures: readonly number[]): Finding {
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
