/** The page, `chartpilot trace --summary` and the last line of an agent's log share these sentences. */
import type { TracedEvent, TraceRecord } from '../trace/trace.ts';
import { count, durationText, text } from './words.ts';

const endingSignals: ReadonlySet<unknown> = new Set(['SIGTERM', 'SIGINT', 'SIGQUIT']);

export const stopRequestTypes = ['quit.requested', 'signal.received'] as const;

export function isEndOrder({ type, signal }: TracedEvent): boolean {
  return type === 'quit.requested' || (type === 'signal.received' && endingSignals.has(signal));
}

/** An epoch that had been live did not fail to start. */
export function failedStartReason({ event, to }: TraceRecord & { kind: 'event' }): string | undefined {
  if (event.type !== 'epoch.failed' || to !== 'supervisor') return undefined;
  if (event.during === 'serving' || event.during === 'draining') return undefined;
  return `${text(event.during)}: ${text(event.reason)}`;
}

export function errorTextsOf(output: unknown): readonly string[] {
  const troubleLines =
    typeof output === 'object' && output !== null ? (output as { trouble?: unknown }).trouble : undefined;
  return Array.isArray(troubleLines) ? troubleLines.map((line) => text(line)) : [];
}

export function orderedEndSentence(ms: number, order: TracedEvent): string {
  const orderText = order.type === 'signal.received' ? text(order.signal) : 'POST /quitquitquit';
  return `exited ${durationText(ms)} after ${orderText}`;
}

export function errorEndSentence([reason = text(undefined), ...otherReasons]: readonly string[]): string {
  return `exited with an error: ${reason}${otherReasons.length === 0 ? '' : ` (and ${otherReasons.length} more)`}`;
}

export function retriesExhaustedSentence(attempts: number, reason: string): string {
  return `retries exhausted after ${count(attempts, 'attempt')}; last failure while ${reason}`;
}

/** Whether the supervisor ended because it could not keep Envoy running. Other errors of the agent can follow a failed start, too. */
export function isRetriesExhausted({ actor, output }: TraceRecord & { kind: 'stop' }): boolean {
  return actor === 'supervisor' && (output as { ordered?: unknown } | null | undefined)?.ordered === false;
}

export class RunEnd {
  readonly #root: string;
  #stopRequest: (TraceRecord & { kind: 'event' }) | undefined;
  #failures = 0;
  #isRetriesExhausted = false;
  #reason = '';
  #sentence: string | undefined;
  #isFailure = false;

  constructor(root: string) {
    this.#root = root;
  }

  /** `undefined` before the root has ended, and after an end without an order or error. */
  get sentence(): string | undefined {
    return this.#sentence;
  }

  get isFailure(): boolean {
    return this.#isFailure;
  }

  addRecord(record: TraceRecord): void {
    if (record.kind === 'event') {
      if (isEndOrder(record.event)) this.#stopRequest ??= record;
      const failedRecord = failedStartReason(record);
      if (failedRecord !== undefined) {
        this.#failures++;
        this.#reason = failedRecord;
      }
      if (record.event.type === 'epoch.live') this.#failures = 0;
    } else if (record.kind === 'stop' && isRetriesExhausted(record)) {
      this.#isRetriesExhausted = true;
    } else if (record.kind === 'stop' && record.actor === this.#root) {
      this.#sentence = this.#endSentence(record);
    }
  }

  #endSentence({ status, output, error, t }: TraceRecord & { kind: 'stop' }): string | undefined {
    const troubleLines = errorTextsOf(output);
    if (status === 'error' || troubleLines.length > 0) {
      this.#isFailure = true;
      if (this.#isRetriesExhausted && this.#failures > 0) return retriesExhaustedSentence(this.#failures, this.#reason);
      return errorEndSentence(troubleLines.length > 0 ? troubleLines : [text(error)]);
    }
    return this.#stopRequest === undefined
      ? undefined
      : orderedEndSentence(t - this.#stopRequest.t, this.#stopRequest.event);
  }
}
