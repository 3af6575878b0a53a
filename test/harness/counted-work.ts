/**
 * Counts work instead of timing it, with the same result on every machine: calls of each function of this project, counted by V8, and elements that
 * engine loops over lists, sets and maps visit. It counts the whole process and wraps the engine's lists, so it is only for tests that run alone in
 * their process (`*.alone.test.ts`).
 */
import { Session } from 'node:inspector';

/** Counts by `function file:offset`, or by method of the engine. */
export type CountedWork = ReadonlyMap<string, number>;

interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly {
    readonly functionName: string;
    readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
  }[];
}

export function countedWork(work: () => void): CountedWork {
  const counting = new Counting();
  try {
    work();
  } finally {
    counting.end();
  }
  return counting.counts;
}

/** Counts asynchronous work, including everything that runs while it is pending. */
export async function countWork(work: () => Promise<unknown>): Promise<CountedWork> {
  const counting = new Counting();
  try {
    await work();
  } finally {
    counting.end();
  }
  return counting.counts;
}

/** Counts from its creation to its end. */
class Counting {
  readonly counts = new Map<string, number>();
  readonly #session = new Session();
  readonly #unwrap: () => void;

  constructor() {
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    this.#unwrap = wrapLists(this.counts);
  }

  end(): void {
    this.#unwrap();
    this.#session.post('Profiler.takePreciseCoverage', (error, coverage) => {
      if (error !== null) throw error;
      for (const script of coverage.result) this.#add(script);
    });
    this.#session.disconnect();
  }

  #add({ url, functions }: ScriptCoverage): void {
    const file = /\/(src\/(?!gen\/).*)$/.exec(url)?.[1];
    if (file === undefined) return;
    for (const { functionName, ranges } of functions) {
      const { startOffset, count } = ranges[0]!;
      // Code that runs when a module is loaded is called once.
      if (count > 1) this.counts.set(`${functionName || 'function'} ${file}:${startOffset}`, count);
    }
  }
}

export function sumOf(workCounts: CountedWork): number {
  return [...workCounts.values()].reduce((all, count) => all + count, 0);
}

type Elements = (self: never, result: unknown) => number;

const listLength: Elements = (list: readonly unknown[]) => list.length;
const copied: Elements = (_, result) => (result as readonly unknown[]).length;
const setSize: Elements = (set: Set<unknown>) => set.size;

/** Loops of the engine, and the maximum number of elements that each visits. */
const loops: readonly [prototype: object, methods: readonly PropertyKey[], Elements][] = [
  [
    Array.prototype,
    ['includes', 'indexOf', 'lastIndexOf', 'find', 'findIndex', 'filter', 'some', 'every', 'map'],
    listLength,
  ],
  [Array.prototype, ['join', 'splice', 'reverse', Symbol.iterator], listLength],
  // Excludes toSpliced, with which a SortedList copies a block: the block size is bounded, but small tests do not reach the bound.
  [Array.prototype, ['slice', 'concat', 'flat'], copied],
  [Set.prototype, [Symbol.iterator], setSize],
  [Map.prototype, ['keys', 'values', 'entries', Symbol.iterator], setSize],
];

/** @returns a function that removes the wrappers */
function wrapLists(counts: Map<string, number>): () => void {
  const befores: [object, PropertyKey, PropertyDescriptor][] = [];
  for (const [prototype, methods, elementsOf] of loops) {
    for (const key of methods) {
      const previous = Object.getOwnPropertyDescriptor(prototype, key)!;
      const name = `${prototype.constructor.name} ${String(key)}`;
      const method = previous.value as (...args: unknown[]) => unknown;
      const wrapped = function (this: never, ...args: unknown[]): unknown {
        const result = method.apply(this, args);
        counts.set(name, (counts.get(name) ?? 0) + elementsOf(this, result));
        return result;
      };
      Object.defineProperty(prototype, key, { ...previous, value: wrapped });
      befores.push([prototype, key, previous]);
    }
  }
  return () => {
    for (const [prototype, key, previous] of befores) Object.defineProperty(prototype, key, previous);
  };
}

/** Work whose count grows faster than the size, with its counts for a small and a large size. */
export interface Growth {
  readonly workName: string;
  readonly counts: readonly [few: number, many: number];
  /** 1: twice the size, twice the count; 2: twice the size, four times the count. */
  readonly exponent: number;
}

/** The growth of all work, and the functions that grow faster than allowed, the most frequent first. */
export interface WorkGrowth {
  readonly exponent: number;
  readonly tooFast: readonly Growth[];
}

/**
 * @param work performs the work for this size
 * @param maxExponent limit for a single function: sorting and trees add a logarithm to 1, which is about 0.2 for small sizes
 */
export function growthOfWork(
  work: (size: number) => CountedWork,
  fewItems: number,
  manyItems: number,
  maxExponent = 1.4,
): WorkGrowth {
  const exponentOf = (previous: number, next: number): number =>
    Math.log(next / previous) / Math.log(manyItems / fewItems);
  const [smallWork, largeWork] = [work(fewItems), work(manyItems)];
  const tooFast = [...largeWork].flatMap(([workName, largeCount]): Growth[] => {
    // Fewer than eight calls per item are not quadratic growth, even if they begin only at a certain size.
    const previous = Math.max(smallWork.get(workName) ?? 0, 8 * fewItems);
    const exponent = exponentOf(previous, largeCount);
    return exponent > maxExponent ? [{ workName, counts: [previous, largeCount], exponent }] : [];
  });
  return {
    exponent: exponentOf(sumOf(smallWork), sumOf(largeWork)),
    tooFast: tooFast.sort((a, b) => b.counts[1] - a.counts[1]),
  };
}
