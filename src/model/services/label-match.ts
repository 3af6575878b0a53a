/** Finding what labels select without trying everything. */
import { onceFor } from '../collections/once-for.ts';
import { PersistentMap } from '../collections/persistent-map.ts';

type Labels = Readonly<Record<string, string>>;

/** Whether each label of a selector is there with its value. No labels select everything. */
export function isSelected(selector: Labels, labels: Labels): boolean {
  return Object.entries(selector).every(([key, value]) => labels[key] === value);
}

/** Things with labels that come and go, found by a selector in time that depends on how many share one of its labels. */
export class LabelIndex<T extends { readonly labels: Labels }> {
  private readonly all = new Map<string, T>();
  private readonly byLabel = new Map<string, Map<string, T>>();

  put(id: string, item: T): void {
    this.drop(id);
    this.all.set(id, item);
    for (const text of labelTexts(item.labels)) {
      const bucket = this.byLabel.get(text);
      if (bucket === undefined) this.byLabel.set(text, new Map([[id, item]]));
      else bucket.set(id, item);
    }
  }

  drop(id: string): void {
    const item = this.all.get(id);
    if (item === undefined) return;
    this.all.delete(id);
    for (const text of labelTexts(item.labels)) {
      const bucket = this.byLabel.get(text)!;
      bucket.delete(id);
      if (bucket.size === 0) this.byLabel.delete(text);
    }
  }

  get size(): number {
    return this.all.size;
  }

  /** Items that a selector selects, in no particular order. */
  selectedBy(selector: Labels): readonly T[] {
    return [...this.candidates(selector).values()].filter((item) => isSelected(selector, item.labels));
  }

  /** Whether a selector selects any item: at once where it has one label, or none. */
  selectsAny(selector: Labels): boolean {
    const candidates = this.candidates(selector);
    if (Object.keys(selector).length < 2) return candidates.size > 0;
    for (const { labels } of candidates.values()) if (isSelected(selector, labels)) return true;
    return false;
  }

  /**
   * Upper bound of the number of items that a selector selects, in time that depends on the selector alone: the number of items with the
   * rarest of its labels. Exact for a selector with one label, or none.
   */
  maxSelectedBy(selector: Labels): number {
    return this.candidates(selector).size;
  }

  private candidates(selector: Labels): ReadonlyMap<string, T> {
    let candidates: ReadonlyMap<string, T> = this.all;
    for (const text of labelTexts(selector)) {
      const bucket = this.byLabel.get(text);
      if (bucket === undefined) return new Map();
      if (bucket.size < candidates.size) candidates = bucket;
    }
    return candidates;
  }
}

interface Placed<T> {
  readonly item: T;
  readonly selector: Labels;
  readonly place: number;
}

/** Things in an order, with selectors: those that select some labels are found among the few that name one of them. Immutable. */
export class SelectingList<T> {
  readonly #forAll: readonly Placed<T>[];
  /** What almost everybody gets is one list. */
  readonly #forAllItems: readonly T[];
  /** Items by the label of their selector that the fewest others have: one that all have tells nothing apart. */
  readonly #byLabel: ReadonlyMap<string, readonly Placed<T>[]>;
  readonly #found = onceFor((labels: Labels) => this.#find(labels));

  /** @param selectorOf no labels, or undefined: it selects everything */
  constructor(items: readonly T[], selectorOf: (item: T) => Labels | undefined) {
    const placed = items.map((item, place) => ({ item, selector: selectorOf(item) ?? {}, place }));
    const counts = new Map<string, number>();
    for (const { selector } of placed) {
      for (const text of labelTexts(selector)) counts.set(text, (counts.get(text) ?? 0) + 1);
    }
    const rarest = (selector: Labels): string | undefined =>
      labelTexts(selector).reduce<string | undefined>(
        (best, text) => (best === undefined || counts.get(text)! < counts.get(best)! ? text : best),
        undefined,
      );
    const groups = Map.groupBy(placed, ({ selector }) => rarest(selector));
    this.#forAll = groups.get(undefined) ?? [];
    this.#forAllItems = this.#forAll.map(({ item }) => item);
    groups.delete(undefined);
    this.#byLabel = groups as ReadonlyMap<string, readonly Placed<T>[]>;
  }

  /** Items that select these labels, in their order; the same list for the same labels. */
  selecting(labels: Labels): readonly T[] {
    return this.#found(labels);
  }

  #find(labels: Labels): readonly T[] {
    const named = this.#byLabel.size === 0 ? [] : labelTexts(labels).flatMap((text) => this.#byLabel.get(text) ?? []);
    const chosen = named.filter(({ selector }) => isSelected(selector, labels));
    if (chosen.length === 0) return this.#forAllItems;
    return [...this.#forAll, ...chosen].sort((a, b) => a.place - b.place).map(({ item }) => item);
  }
}

/** Selectors of things by namespace, found by the labels that they select. Immutable: each change makes another. */
export class SelectorIndex<T> {
  /** Items by namespace and one label of the selector: whatever the selector selects has that one. */
  private readonly buckets: PersistentMap<readonly Selecting<T>[]>;
  /** What was found for labels, by namespace: a proxy comes with the same labels in each context. */
  private readonly found = onceFor((_: Labels) => new Map<string, readonly Selecting<T>[]>());

  constructor(buckets: PersistentMap<readonly Selecting<T>[]> = PersistentMap.empty()) {
    this.buckets = buckets;
  }

  with(namespace: string, selecting: Selecting<T>): SelectorIndex<T> {
    const bucket = bucketOf(namespace, selecting.selector);
    const others = (this.buckets.get(bucket) ?? []).filter(({ id }) => id !== selecting.id);
    return new SelectorIndex(this.buckets.with(bucket, [...others, selecting]));
  }

  without(namespace: string, { id, selector }: Pick<Selecting<T>, 'id' | 'selector'>): SelectorIndex<T> {
    const bucket = bucketOf(namespace, selector);
    const left = (this.buckets.get(bucket) ?? []).filter((other) => other.id !== id);
    return new SelectorIndex(left.length === 0 ? this.buckets.without(bucket) : this.buckets.with(bucket, left));
  }

  /** Items of a namespace that select these labels, in no particular order: found once for a workload's labels, and kept. */
  selecting(namespace: string, labels: Labels): readonly Selecting<T>[] {
    const known = this.found(labels);
    let selecting = known.get(namespace);
    if (selecting === undefined) {
      selecting = this.find(namespace, labels);
      known.set(namespace, selecting);
    }
    return selecting;
  }

  private find(namespace: string, labels: Labels): readonly Selecting<T>[] {
    const buckets = [bucketOf(namespace, {}), ...labelTexts(labels).map((text) => `${namespace}|${text}`)];
    return buckets
      .flatMap((bucket) => this.buckets.get(bucket) ?? [])
      .filter(({ selector }) => isSelected(selector, labels));
  }
}

export interface Selecting<T> {
  readonly id: string;
  readonly selector: Labels;
  readonly item: T;
}

function bucketOf(namespace: string, selector: Labels): string {
  return `${namespace}|${labelTexts(selector)[0] ?? ''}`;
}

function labelTexts(labels: Labels): string[] {
  return Object.entries(labels).map(([key, value]) => `${key}=${value}`);
}
