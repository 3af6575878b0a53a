import {
  errorEndSentence,
  errorTextsOf,
  isEndOrder,
  isRetriesExhausted,
  orderedEndSentence,
  stopRequestTypes,
} from '../../runtime/findings/run-end.ts';
import { text } from '../../runtime/findings/words.ts';
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import { causeChain } from '../trace/cause-chain.ts';
import type { Finding, FindingRule, RuleRun, Run } from './finding.ts';

export const endingRule: FindingRule = {
  name: 'ending',
  reads: { events: [...stopRequestTypes, 'epoch.failed', 'epoch.live'], kinds: ['spawn', 'stop'] },
  begin: () => new ProgramEndRun(),
};

class ProgramEndRun implements RuleRun {
  #stopOrderIndex: number | undefined;
  #hasEnded = false;
  /** Failed starts since the last success. If they exhausted the retries, the rule for failed starts reports the end instead. */
  #failedAttempts = 0;
  #isRetriesExhausted = false;

  onRecord(record: TraceRecord, index: number, run: Run): Finding[] | undefined {
    if (record.kind === 'event' && isEndOrder(record.event)) this.#stopOrderIndex ??= index;
    if (record.kind === 'event' && record.event.type === 'epoch.failed') this.#failedAttempts++;
    if (record.kind === 'event' && record.event.type === 'epoch.live') this.#failedAttempts = 0;
    if (record.kind === 'spawn' && record.parent === undefined) this.#hasEnded = false;
    if (record.kind === 'stop' && isRetriesExhausted(record)) this.#isRetriesExhausted = true;
    if (record.kind !== 'stop' || !isRoot(record, run)) return undefined;
    this.#hasEnded = true;
    const isReported = this.#isRetriesExhausted && this.#failedAttempts > 0;
    if (isRootEnd(record, run)) return isReported ? undefined : [this.#unexpectedEndFinding(record, index, run)];
    if (this.#stopOrderIndex === undefined) return undefined;
    const order = run.recordAt(this.#stopOrderIndex) as TraceRecord & { kind: 'event' };
    return [
      {
        rule: 'ending',
        weight: 'fine',
        sentence: orderedEndSentence(record.t - order.t, order.event),
        index,
        range: [this.#stopOrderIndex, index],
        root: this.#stopOrderIndex,
      },
    ];
  }

  #unexpectedEndFinding(record: TraceRecord & { kind: 'stop' }, index: number, run: Run): Finding {
    const problems = errorTextsOf(record.output);
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
      this.#stopOrderIndex === undefined
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
  return isRoot(record, run) && (record.status === 'error' || errorTextsOf(record.output).length > 0);
}
