/**
 * How much work something is, counted and not timed: calls of each of our functions, as V8 counts them, and elements that the
 * engine's own loops over lists, sets and maps pass by. The same on every machine, however busy. Only for tests that run alone in
 * their process (`*.alone.test.ts`): what is counted is the whole process, and the engine's lists are wrapped meanwhile.
 */
import { Session } from 'node:inspector';

/** How often a thing was done, by `function file:offset`, or the method of the engine's. */
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

/** The same of what is waited for: of all that happens meanwhile. */
export async function countedWhile(work: () => Promise<unknown>): Promise<CountedWork> {
  const counting = new Counting();
  try {
    await work();
  } finally {
    counting.end();
  }
  return counting.counts;
}

/** From its making to its end. */
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
    this.#session.post('Profiler.takePreciseCoverage', (error, taken) => {
      if (error !== null) throw error;
      for (const script of taken.result) this.#add(script);
    });
    this.#session.disconnect();
  }

  #add({ url, functions }: ScriptCoverage): void {
    const file = /\/(src\/(?!gen\/).*)$/.exec(url)?.[1];
    if (file === undefined) return;
    for (const { functionName, ranges } of functions) {
      const { startOffset, count } = ranges[0]!;
      // What is called when a module is loaded is called once.
      if (count > 1) this.counts.set(`${functionName || 'function'} ${file}:${startOffset}`, count);
    }
  }
}

/** How much that is, all together. */
export function sumOf(counted: CountedWork): number {
  return [...counted.values()].reduce((all, count) => all + count, 0);
}

type Elements = (self: never, result: unknown) => number;

const listed: Elements = (list: readonly unknown[]) => list.length;
const copied: Elements = (_, result) => (result as readonly unknown[]).length;
const held: Elements = (set: Set<unknown>) => set.size;

/** The engine's own loops, and how many elements one passes by at the most. */
const loops: readonly [prototype: object, methods: readonly PropertyKey[], Elements][] = [
  [
    Array.prototype,
    ['includes', 'indexOf', 'lastIndexOf', 'find', 'findIndex', 'filter', 'some', 'every', 'map'],
    listed,
  ],
  [Array.prototype, ['join', 'splice', 'reverse', Symbol.iterator], listed],
  // Not toSpliced: a SortedList copies a block with it, which has a bound that small tests do not come to.
  [Array.prototype, ['slice', 'concat', 'flat'], copied],
  [Set.prototype, [Symbol.iterator], held],
  [Map.prototype, ['keys', 'values', 'entries', Symbol.iterator], held],
];

/** @returns how to take the wrappers off. */
function wrapLists(counts: Map<string, number>): () => void {
  const befores: [object, PropertyKey, PropertyDescriptor][] = [];
  for (const [prototype, methods, elementsOf] of loops) {
    for (const key of methods) {
      const before = Object.getOwnPropertyDescriptor(prototype, key)!;
      const name = `${prototype.constructor.name} ${String(key)}`;
      const method = before.value as (...args: unknown[]) => unknown;
      const wrapped = function (this: never, ...args: unknown[]): unknown {
        const result = method.apply(this, args);
        counts.set(name, (counts.get(name) ?? 0) + elementsOf(this, result));
        return result;
      };
      Object.defineProperty(prototype, key, { ...before, value: wrapped });
      befores.push([prototype, key, before]);
    }
  }
  return () => {
    for (const [prototype, key, before] of befores) Object.defineProperty(prototype, key, before);
  };
}

/** A thing whose count grows faster than the size: how often it was done with few and with many. */
export interface Growth {
  readonly what: string;
  readonly counts: readonly [few: number, many: number];
  /** 1: twice the size, twice the count; 2: four times the count. */
  readonly exponent: number;
}

/** How fast all of the work grows, and what of it grows faster than it may, the most frequent first. */
export interface WorkGrowth {
  readonly exponent: number;
  readonly tooFast: readonly Growth[];
}

/**
 * @param work how much there is with so many
 * @param maxExponent of a single thing: sorting and trees have a logarithm to add to 1, which looks like 0.2 in small numbers
 */
export function growthOfWork(
  work: (size: number) => CountedWork,
  few: number,
  many: number,
  maxExponent = 1.4,
): WorkGrowth {
  const exponentOf = (before: number, after: number): number => Math.log(after / before) / Math.log(many / few);
  const [small, large] = [work(few), work(many)];
  const tooFast = [...large].flatMap(([what, after]): Growth[] => {
    // What is done a few times for each thing is not done for each pair of them, and may begin at some size.
    const before = Math.max(small.get(what) ?? 0, 8 * few);
    const exponent = exponentOf(before, after);
    return exponent > maxExponent ? [{ what, counts: [before, after], exponent }] : [];
  });
  return {
    exponent: exponentOf(sumOf(small), sumOf(large)),
    tooFast: tooFast.sort((a, b) => b.counts[1] - a.counts[1]),
  };
}
