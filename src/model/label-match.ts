/** Finding what labels select without trying everything. */
type Labels = Readonly<Record<string, string>>;

/** Whether each label of a selector is there with its value. No labels select everything. */
export function isSelected(selector: Labels, labels: Labels): boolean {
  return Object.entries(selector).every(([key, value]) => labels[key] === value);
}

/** Things with labels, found by a selector in time that depends on how many share one of its labels. */
export class LabelIndex<T extends { readonly labels: Labels }> {
  private readonly all: readonly T[];
  private readonly byLabel = new Map<string, T[]>();

  constructor(items: readonly T[]) {
    this.all = items;
    for (const item of items) {
      for (const [key, value] of Object.entries(item.labels)) {
        const text = `${key}=${value}`;
        const bucket = this.byLabel.get(text);
        if (bucket === undefined) this.byLabel.set(text, [item]);
        else bucket.push(item);
      }
    }
  }

  /** In the order in which they were given. */
  selectedBy(selector: Labels): readonly T[] {
    let candidates = this.all;
    for (const [key, value] of Object.entries(selector)) {
      const bucket = this.byLabel.get(`${key}=${value}`) ?? [];
      if (bucket.length < candidates.length) candidates = bucket;
    }
    return candidates.filter((item) => isSelected(selector, item.labels));
  }
}
