import { memoizeByObject } from '../collections/memoize-by-object.ts';
import { PersistentMap } from '../collections/persistent-map.ts';

type Labels = Readonly<Record<string, string>>;

/** An empty selector matches all labels. */
export function matchesSelector(selector: Labels, labels: Labels): boolean {
  return Object.entries(selector).every(([key, value]) => labels[key] === value);
}

/** A selection costs the number of items with the rarest label of the selector. */
export class LabelIndex<T extends { readonly labels: Labels }> {
  private readonly itemsById = new Map<string, T>();
  private readonly itemsByLabel = new Map<string, Map<string, T>>();

  put(id: string, item: T): void {
    this.remove(id);
    this.itemsById.set(id, item);
    for (const text of labelTexts(item.labels)) {
      const bucket = this.itemsByLabel.get(text);
      if (bucket === undefined) this.itemsByLabel.set(text, new Map([[id, item]]));
      else bucket.set(id, item);
    }
  }

  remove(id: string): void {
    const item = this.itemsById.get(id);
    if (item === undefined) return;
    this.itemsById.delete(id);
    for (const text of labelTexts(item.labels)) {
      const bucket = this.itemsByLabel.get(text)!;
      bucket.delete(id);
      if (bucket.size === 0) this.itemsByLabel.delete(text);
    }
  }

  get size(): number {
    return this.itemsById.size;
  }

  selectedBy(selector: Labels): readonly T[] {
    return [...this.candidates(selector).values()].filter((item) => matchesSelector(selector, item.labels));
  }

  /** Takes constant time for a selector with at most one label. */
  selectsAny(selector: Labels): boolean {
    const candidates = this.candidates(selector);
    if (Object.keys(selector).length < 2) return candidates.size > 0;
    for (const { labels } of candidates.values()) if (matchesSelector(selector, labels)) return true;
    return false;
  }

  /** An upper bound at constant cost: the count of the selector's rarest label. Exact for at most one label. */
  maxSelectedBy(selector: Labels): number {
    return this.candidates(selector).size;
  }

  private candidates(selector: Labels): ReadonlyMap<string, T> {
    let candidates: ReadonlyMap<string, T> = this.itemsById;
    for (const text of labelTexts(selector)) {
      const bucket = this.itemsByLabel.get(text);
      if (bucket === undefined) return new Map();
      if (bucket.size < candidates.size) candidates = bucket;
    }
    return candidates;
  }
}

interface SelectorItem<T> {
  readonly item: T;
  readonly selector: Labels;
  readonly itemIndex: number;
}

/** A list of items with selectors, which checks only items that name one of the given labels. */
export class SelectingList<T> {
  readonly #unselectiveItems: readonly SelectorItem<T>[];
  readonly #unselectiveItemList: readonly T[];
  /** Each item is listed under the rarest label of its selector, which excludes most other items. */
  readonly #itemsByLabel: ReadonlyMap<string, readonly SelectorItem<T>[]>;
  readonly #matchesByLabels = memoizeByObject((labels: Labels) => this.#find(labels));

  /** @param selectorOf empty labels or `undefined` select everything */
  constructor(items: readonly T[], selectorOf: (item: T) => Labels | undefined) {
    const indexedItems = items.map((item, itemIndex) => ({ item, selector: selectorOf(item) ?? {}, itemIndex }));
    const counts = new Map<string, number>();
    for (const { selector } of indexedItems) {
      for (const text of labelTexts(selector)) counts.set(text, (counts.get(text) ?? 0) + 1);
    }
    const rarestLabel = (selector: Labels): string | undefined =>
      labelTexts(selector).reduce<string | undefined>(
        (rarestText, text) =>
          rarestText === undefined || counts.get(text)! < counts.get(rarestText)! ? text : rarestText,
        undefined,
      );
    const groups = Map.groupBy(indexedItems, ({ selector }) => rarestLabel(selector));
    this.#unselectiveItems = groups.get(undefined) ?? [];
    this.#unselectiveItemList = this.#unselectiveItems.map(({ item }) => item);
    groups.delete(undefined);
    this.#itemsByLabel = groups as ReadonlyMap<string, readonly SelectorItem<T>[]>;
  }

  itemsSelecting(labels: Labels): readonly T[] {
    return this.#matchesByLabels(labels);
  }

  #find(labels: Labels): readonly T[] {
    const labelledItems =
      this.#itemsByLabel.size === 0 ? [] : labelTexts(labels).flatMap((text) => this.#itemsByLabel.get(text) ?? []);
    const matchingItems = labelledItems.filter(({ selector }) => matchesSelector(selector, labels));
    if (matchingItems.length === 0) return this.#unselectiveItemList;
    return [...this.#unselectiveItems, ...matchingItems]
      .sort((a, b) => a.itemIndex - b.itemIndex)
      .map(({ item }) => item);
  }
}

/** Selectors by namespace, indexed by their labels. Immutable: each change returns a new index. */
export class SelectorIndex<T> {
  private readonly buckets: PersistentMap<readonly SelectingItem<T>[]>;
  /** Results by label object and namespace. A proxy keeps its label object across contexts. */
  private readonly cachedMatches = memoizeByObject((_: Labels) => new Map<string, readonly SelectingItem<T>[]>());

  constructor(buckets: PersistentMap<readonly SelectingItem<T>[]> = PersistentMap.empty()) {
    this.buckets = buckets;
  }

  withItem(namespace: string, newItem: SelectingItem<T>): SelectorIndex<T> {
    const bucket = bucketOf(namespace, newItem.selector);
    const otherItems = (this.buckets.get(bucket) ?? []).filter(({ id }) => id !== newItem.id);
    return new SelectorIndex(this.buckets.with(bucket, [...otherItems, newItem]));
  }

  withoutItem(namespace: string, { id, selector }: Pick<SelectingItem<T>, 'id' | 'selector'>): SelectorIndex<T> {
    const bucket = bucketOf(namespace, selector);
    const remainingSelectors = (this.buckets.get(bucket) ?? []).filter((selectorItem) => selectorItem.id !== id);
    return new SelectorIndex(
      remainingSelectors.length === 0 ? this.buckets.withoutKey(bucket) : this.buckets.with(bucket, remainingSelectors),
    );
  }

  itemsSelecting(namespace: string, labels: Labels): readonly SelectingItem<T>[] {
    const matchesByNamespace = this.cachedMatches(labels);
    let selectingItems = matchesByNamespace.get(namespace);
    if (selectingItems === undefined) {
      selectingItems = this.findItems(namespace, labels);
      matchesByNamespace.set(namespace, selectingItems);
    }
    return selectingItems;
  }

  private findItems(namespace: string, labels: Labels): readonly SelectingItem<T>[] {
    const buckets = [bucketOf(namespace, {}), ...labelTexts(labels).map((text) => `${namespace}|${text}`)];
    return buckets
      .flatMap((bucket) => this.buckets.get(bucket) ?? [])
      .filter(({ selector }) => matchesSelector(selector, labels));
  }
}

export interface SelectingItem<T> {
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
