/** Describes retries by texts such as "9 × SIGKILL while initializing", "attempt 3 of 11, next in 4.0 s". */
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import type { CauseLink } from './cause-chain.ts';
import type { ChainPart } from './fold-chain.ts';

export interface Attempt {
  readonly words: string;
  readonly links: readonly CauseLink[];
}

export function describeFailures({ links }: ChainPart): string | undefined {
  const failures = links.flatMap(({ record }) => (record.kind === 'event' ? [record.event] : [])).filter(isFailure);
  const describedFailure = failures.find(({ reason, signal }) => typeof (reason ?? signal) === 'string') ?? failures[0];
  if (describedFailure === undefined) {
    const failedRecord = links.find(({ record }) => record.kind === 'stop' && record.status === 'error')?.record;
    return failedRecord?.kind === 'stop' ? `${failedRecord.actor} failed` : undefined;
  }
  const reason =
    [describedFailure.signal, describedFailure.reason].find((candidate) => typeof candidate === 'string') ??
    describedFailure.type;
  return typeof describedFailure.during === 'string'
    ? `${String(reason)} while ${describedFailure.during}`
    : String(reason);
}

function isFailure({ type, signal }: { readonly type: string; readonly signal?: unknown }): boolean {
  return (
    /(?:^|[.-])(?:failed|refused|rejected|crashed)$/.test(type) || (/exited$/.test(type) && typeof signal === 'string')
  );
}

/** The latest attempt first. `spanInWords` formats the duration of a pause. */
export function attemptsOf(chainPart: ChainPart, spanInWords: (ms: number) => string): Attempt[] {
  const period = chainPart.links.length;
  const attemptTimes = Array.from({ length: chainPart.times }, (_, i) =>
    i === 0 ? chainPart.links : chainPart.repetitions.slice((i - 1) * period, i * period),
  );
  const attemptNumbers = attemptTimes.map(attemptOf);
  const maxAttempt = Math.max(chainPart.times, ...attemptNumbers.map((attempt) => attempt ?? 0));
  return attemptTimes.map((links, i) => {
    const attempt = attemptNumbers[i] ?? chainPart.times - i;
    // The pause before an attempt follows from the previous attempt.
    const pauseText = i === 0 ? undefined : pauseOf(attemptTimes[i - 1]!);
    return {
      words: `attempt ${attempt} of ${maxAttempt}${pauseText === undefined ? '' : `, next in ${spanInWords(pauseText)}`}`,
      links,
    };
  });
}

function attemptOf(links: readonly CauseLink[]): number | undefined {
  return firstValue(links, (record) =>
    record.kind === 'event' && typeof record.event.attempt === 'number' ? record.event.attempt : undefined,
  );
}

function pauseOf(links: readonly CauseLink[]): number | undefined {
  return firstValue(links, (record) => (record.kind === 'timer-started' ? record.ms : undefined));
}

function firstValue(
  links: readonly CauseLink[],
  value: (record: TraceRecord) => number | undefined,
): number | undefined {
  for (const { record } of links) {
    const fieldValue = value(record);
    if (fieldValue !== undefined) return fieldValue;
  }
  return undefined;
}
