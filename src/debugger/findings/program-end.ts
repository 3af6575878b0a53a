import {
  endOrders,
  errorEndSentence,
  isEndOrder,
  isRetriesExhausted,
  orderedEndSentence,
  troubleOf,
} from '../../runtime/findings/run-end.ts';
import { text } from '../../runtime/findings/words.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { causeChain } from '../trace/cause-chain.ts';
import type { Finding, FindingRule, RuleRun, Run } from './finding.ts';

export const endingRule: FindingRule = {
  name: 'ending',
  reads: { events: [...endOrders, 'epoch.failed', 'epoch.live'], kinds: ['spawn', 'stop'] },
  begin: () => new EndingRun(),
};

class EndingRun implements RuleRun {
  #orderedIndex: number | undefined;
  #hasEnded = false;
  /** Failed starts since the last success. If they exhausted the retries, the rule for failed starts reports the end instead. */
  #failedTries = 0;
  #isRetriesExhausted = false;

  onRecord(record: TraceRecord, index: number, run: Run): Finding[] | undefined {
    if (record.kind === 'event' && isEndOrder(record.event)) this.#orderedIndex ??= index;
    if (record.kind === 'event' && record.event.type === 'epoch.failed') this.#failedTries++;
    if (record.kind === 'event' && record.event.type === 'epoch.live') this.#failedTries = 0;
    if (record.kind === 'spawn' && record.parent === undefined) this.#hasEnded = false;
    if (record.kind === 'stop' && isRetriesExhausted(record)) this.#isRetriesExhausted = true;
    if (record.kind !== 'stop' || !isRoot(record, run)) return undefined;
    this.#hasEnded = true;
    const isReported = this.#isRetriesExhausted && this.#failedTries > 0;
    if (isRootEnd(record, run)) return isReported ? undefined : [this.#unexpectedEndFinding(record, index, run)];
    if (this.#orderedIndex === undefined) return undefined;
    const order = run.recordAt(this.#orderedIndex) as TraceRecord & { kind: 'event' };
    return [
      {
        rule: 'ending',
        weight: 'fine',
        sentence: orderedEndSentence(record.t - order.t, order.event),
        index,
        range: [this.#orderedIndex, index],
        root: this.#orderedIndex,
      },
    ];
  }

  #unexpectedEndFinding(record: TraceRecord & { kind: 'stop' }, index: number, run: Run): Finding {
    const problems = troubleOf(record.output);
    const root = causeChain(run, index, ({ how }) => how === 'cause').links.at(-1)?.index;
    return {
      rule: 'ending',
      weight: 'bad',
      sentence:
        run.header.foreign === true
          ? `${record.actor} failed: ${text(record.error)}`
          : errorEndSentence(problems.length > 0 ? problems : [text(record.error)]),
      index,
      range: [root ?? index, index],
      ...(root !== undefined && { root }),
    };
  }

  end({ length }: Run): Finding[] | undefined {
    const index = length - 1;
    if (this.#hasEnded || index < 0) return undefined;
    const sentence =
      this.#orderedIndex === undefined
        ? 'the trace ends while the program is running: it still runs, or it was killed'
        : 'the trace ends while the program is stopping: it is still stopping, or it was killed';
    return [{ rule: 'ending', weight: 'note', sentence, index, range: [index, index] }];
  }
}

function isRoot({ actor }: TraceRecord & { kind: 'stop' }, { header }: Run): boolean {
  // In a foreign trace, actor names are paths from their roots.
  if (header.foreign === true) return !actor.includes('/');
  return actor === 'agent' || actor === 'discovery' || actor === header.program;
}

export function isRootEnd(record: TraceRecord & { kind: 'stop' }, run: Run): boolean {
  return isRoot(record, run) && (record.status === 'error' || troubleOf(record.output).length > 0);
}
