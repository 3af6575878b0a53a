import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { failedStart, gaveUp } from '../../runtime/verdicts/ending.ts';
import { count, spoken, text } from '../../runtime/verdicts/words.ts';
import { StateTags } from '../trace/state-tags.ts';
import { isRootEnd } from './ending.ts';
import { Serving } from './serving.ts';
import type { RuleRun, Run, Verdict, VerdictRule } from './verdict.ts';

/** Starts that failed one after the other: until one succeeded, or until the agent gave up. */
export const failedTriesRule: VerdictRule = { name: 'failed tries', begin: () => new FailedTriesRun() };

class FailedTriesRun implements RuleRun {
  readonly #serving = new Serving();
  /** Places of the failures since an Envoy came to be live last. */
  #failures: number[] = [];
  #reason = '';
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
      this.#reason = failed;
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
        `${spoken(text(event.name))} is live after ${count(failures.length, 'failed try', 'failed tries')}, the last while ${this.#reason}`,
        index,
        failures,
      ),
    ];
  }

  #transition({ actor, to }: TraceRecord & { kind: 'transition' }, index: number, run: Run): Verdict[] | undefined {
    if (actor !== 'supervisor' || this.#toldGivenUp) return undefined;
    this.#tags ??= new StateTags(run.header.machines);
    if (!this.#tags.of(actor, to).has('given up')) return undefined;
    this.#toldGivenUp = true;
    const who = this.#serving.name === undefined ? 'nobody serves' : `${spoken(this.#serving.name)} serves on`;
    return [
      this.#verdict(
        'bad',
        `gave up on the configuration after ${count(this.#failures.length, 'try', 'tries')}, the last failed while ${this.#reason}; ${who}`,
        index,
        this.#failures,
      ),
    ];
  }

  /** The end of the agent, other than by order. */
  #stop(record: TraceRecord & { kind: 'stop' }, index: number, run: Run): Verdict[] | undefined {
    if (!isRootEnd(record, run) || this.#failures.length === 0) return undefined;
    return [this.#verdict('bad', gaveUp(this.#failures.length, this.#reason), index, this.#failures)];
  }

  #verdict(weight: Verdict['weight'], sentence: string, index: number, failures: readonly number[]): Verdict {
    const [root] = failures;
    return {
      rule: 'failed tries',
      weight,
      sentence,
      index,
      range: [root ?? index, index],
      ...(root !== undefined && { root: failures.at(-1)! }),
    };
  }
}
