/** Folds retries in a chain of causes, so that repeated steps are shown once. */
import type { TraceRecord } from '../../runtime/trace/trace.ts';
import type { CauseLink } from './cause-chain.ts';

export interface ChainPart {
  readonly times: number;
  /** The first repetition is the latest in the trace. */
  readonly links: readonly CauseLink[];
  readonly repetitions: readonly CauseLink[];
}

/** Maximum number of steps of a repetition; a retry has about 20. */
const maxPeriod = 60;
/** Folding must save more lines than its description takes. */
const minSavedLines = 3;

/** Merges consecutive repetitions that differ only in numbers. */
export function foldChain(links: readonly CauseLink[]): ChainPart[] {
  const foldingKeys = links.map(foldingKeyOf);
  const chainParts: ChainPart[] = [];
  let singleLinks: CauseLink[] = [];
  const endSingle = (): void => {
    if (singleLinks.length > 0) chainParts.push({ times: 1, links: singleLinks, repetitions: [] });
    singleLinks = [];
  };
  for (let linkIndex = 0; linkIndex < links.length; ) {
    const { period, times } = findRepetition(foldingKeys, linkIndex);
    if (times === 1) {
      singleLinks.push(links[linkIndex++]!);
      continue;
    }
    endSingle();
    const end = linkIndex + period * times;
    chainParts.push({
      times,
      links: links.slice(linkIndex, linkIndex + period),
      repetitions: links.slice(linkIndex + period, end),
    });
    linkIndex = end;
  }
  endSingle();
  return chainParts;
}

/** Of two equal repetitions, the one with fewer steps is preferred. */
function findRepetition(foldingKeys: readonly string[], start: number): { period: number; times: number } {
  let bestRepetition = { period: 1, times: 1 };
  let savedLines = minSavedLines - 1;
  for (let period = 1; period <= maxPeriod && start + 2 * period <= foldingKeys.length; period++) {
    let sameCount = 0;
    while (
      foldingKeys[start + sameCount] !== undefined &&
      foldingKeys[start + sameCount] === foldingKeys[start + sameCount + period]
    )
      sameCount++;
    const times = 1 + Math.floor(sameCount / period);
    if ((times - 1) * period > savedLines) {
      savedLines = (times - 1) * period;
      bestRepetition = { period, times };
    }
  }
  return bestRepetition;
}

function foldingKeyOf({ how, record }: CauseLink): string {
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

/** `epoch-3/process` and `epoch-0b/process` are in one series. */
function seriesOf(name: string): string {
  return name.replaceAll(/-\d+[a-z]?(?![\w-])/g, '-N');
}
