/** Folds retries in a chain of causes, so that the steps of eleven attempts are shown once. */
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import type { CauseLink } from './cause-chain.ts';

export interface ChainPart {
  /** How often the links are repeated consecutively; 1 if they are not repeated. */
  readonly times: number;
  /** The links of the first repetition, which is the latest in the trace. */
  readonly links: readonly CauseLink[];
  readonly repetitions: readonly CauseLink[];
}

/** Maximum number of steps of a repetition; a retry has about 20. */
const maxPeriod = 60;
/** Folding must save more lines than its description takes. */
const minSavedLines = 3;

/** Merges consecutive repetitions that differ only in numbers. */
export function foldChain(links: readonly CauseLink[]): ChainPart[] {
  const signs = links.map(signOf);
  const parts: ChainPart[] = [];
  let single: CauseLink[] = [];
  const endSingle = (): void => {
    if (single.length > 0) parts.push({ times: 1, links: single, repetitions: [] });
    single = [];
  };
  for (let at = 0; at < links.length; ) {
    const { period, times } = repeatedFrom(signs, at);
    if (times === 1) {
      single.push(links[at++]!);
      continue;
    }
    endSingle();
    const end = at + period * times;
    parts.push({ times, links: links.slice(at, at + period), repetitions: links.slice(at + period, end) });
    at = end;
  }
  endSingle();
  return parts;
}

/** The repetition that saves the most links; of two equal ones the one with fewer steps. */
function repeatedFrom(signs: readonly string[], at: number): { period: number; times: number } {
  let best = { period: 1, times: 1 };
  let saved = minSavedLines - 1;
  for (let period = 1; period <= maxPeriod && at + 2 * period <= signs.length; period++) {
    let same = 0;
    while (signs[at + same] !== undefined && signs[at + same] === signs[at + same + period]) same++;
    const times = 1 + Math.floor(same / period);
    if ((times - 1) * period > saved) {
      saved = (times - 1) * period;
      best = { period, times };
    }
  }
  return best;
}

/** A key of a record without the numbers of its actors and its time. */
function signOf({ how, record }: CauseLink): string {
  return [how, record.kind, ...partsOf(record).map(seriesOf)].join(' ');
}

function partsOf(record: TraceRecord): string[] {
  switch (record.kind) {
    case 'event':
      return [record.from, record.to, record.event.type];
    case 'timer':
    case 'timer-started':
      return [record.actor, record.timer];
    case 'transition':
      return [record.actor, record.on, record.from, record.to];
    case 'step':
    case 'unexpected':
      return [record.actor, record.on];
    default:
      return [record.actor];
  }
}

/** `epoch-3/process` and `epoch-0b/process` are in one series, and so are the events that contain these names. */
function seriesOf(name: string): string {
  return name.replaceAll(/-\d+[a-z]?(?![\w-])/g, '-N');
}
