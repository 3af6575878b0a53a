/** Descriptions of repeated attempts: "9 × SIGKILL while initializing", "attempt 3 of 11, next in 4.0 s". */
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import type { CauseLink } from './cause-chain.ts';
import type { ChainPart } from './fold-chain.ts';

export interface Try {
  readonly words: string;
  readonly links: readonly CauseLink[];
}

/** A description of the failures of a repetition; `undefined` without a failure. */
export function worstInWords({ links }: ChainPart): string | undefined {
  const failures = links.flatMap(({ record }) => (record.kind === 'event' ? [record.event] : [])).filter(isFailure);
  const told = failures.find(({ reason, signal }) => typeof (reason ?? signal) === 'string') ?? failures[0];
  if (told === undefined) {
    const broken = links.find(({ record }) => record.kind === 'stop' && record.status === 'error')?.record;
    return broken?.kind === 'stop' ? `${broken.actor} failed` : undefined;
  }
  const reason = [told.signal, told.reason].find((word) => typeof word === 'string') ?? told.type;
  return typeof told.during === 'string' ? `${String(reason)} while ${told.during}` : String(reason);
}

function isFailure({ type, signal }: { readonly type: string; readonly signal?: unknown }): boolean {
  return (
    /(?:^|[.-])(?:failed|refused|rejected|crashed)$/.test(type) || (/exited$/.test(type) && typeof signal === 'string')
  );
}

/** All attempts, the latest first. `spanInWords` formats the duration of a pause. */
export function triesOf(part: ChainPart, spanInWords: (ms: number) => string): Try[] {
  const period = part.links.length;
  const times = Array.from({ length: part.times }, (_, i) =>
    i === 0 ? part.links : part.others.slice((i - 1) * period, i * period),
  );
  const known = times.map(attemptOf);
  const most = Math.max(part.times, ...known.map((attempt) => attempt ?? 0));
  return times.map((links, i) => {
    const attempt = known[i] ?? part.times - i;
    // The pause before an attempt follows from the previous attempt.
    const pause = i === 0 ? undefined : pauseOf(times[i - 1]!);
    return {
      words: `attempt ${attempt} of ${most}${pause === undefined ? '' : `, next in ${spanInWords(pause)}`}`,
      links,
    };
  });
}

function attemptOf(links: readonly CauseLink[]): number | undefined {
  return first(links, (record) =>
    record.kind === 'event' && typeof record.event.attempt === 'number' ? record.event.attempt : undefined,
  );
}

function pauseOf(links: readonly CauseLink[]): number | undefined {
  return first(links, (record) => (record.kind === 'timer-started' ? record.ms : undefined));
}

function first(links: readonly CauseLink[], value: (record: TraceRecord) => number | undefined): number | undefined {
  for (const { record } of links) {
    const found = value(record);
    if (found !== undefined) return found;
  }
  return undefined;
}
