import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LabelIndex, matchesSelector, SelectorIndex } from './label-match.ts';

const labels = fc.dictionary(fc.constantFrom('a', 'b'), fc.constantFrom('1', '2'));
const id = fc.integer({ min: 0, max: 5 }).map(String);

describe('LabelIndex', () => {
  it('returns the same items as a scan after any additions and removals', () => {
    const step = fc.record({ id, labels: fc.option(labels) });
    fc.assert(
      fc.property(fc.array(step), labels, (steps, selector) => {
        const index = new LabelIndex<{ id: string; labels: Record<string, string> }>();
        const model = new Map<string, { id: string; labels: Record<string, string> }>();
        for (const item of steps) {
          if (item.labels === null) index.remove(item.id);
          else index.put(item.id, { id: item.id, labels: item.labels });
          if (item.labels === null) model.delete(item.id);
          else model.set(item.id, { id: item.id, labels: item.labels });
        }
        const expected = [...model.values()].filter((item) => matchesSelector(selector, item.labels));
        expect(
          index
            .selectedBy(selector)
            .map((item) => item.id)
            .toSorted(),
        ).toEqual(expected.map((item) => item.id).toSorted());
      }),
    );
  });

  it('returns everything for an empty selector', () => {
    const index = new LabelIndex();
    index.put('x', { labels: {} });
    expect(index.selectedBy({})).toHaveLength(1);
  });
});

describe('SelectorIndex', () => {
  it("searches once for a workload's labels, and again after selectors are added", () => {
    let searches = 0;
    const ownKeys = (of: Record<string, string>): (string | symbol)[] => {
      searches++;
      return Reflect.ownKeys(of);
    };
    const labelProxy = new Proxy<Record<string, string>>({ a: '1' }, { ownKeys });
    const one = new SelectorIndex<string>().withItem('n', { id: 'x', selector: { a: '1' }, item: 'x' });
    const matchingItems = (index: SelectorIndex<string>): string[] =>
      index.itemsSelecting('n', labelProxy).map(({ item }) => item);
    expect([matchingItems(one), matchingItems(one), matchingItems(one)]).toEqual([['x'], ['x'], ['x']]);
    expect(searches).toBe(1);
    expect(one.itemsSelecting('m', labelProxy)).toEqual([]);
    expect(matchingItems(one.withItem('n', { id: 'y', selector: {}, item: 'y' }))).toEqual(['y', 'x']);
  });

  it('returns the same selectors as a scan of the namespace', () => {
    const namespace = fc.constantFrom('n', 'm');
    fc.assert(
      fc.property(
        fc.array(fc.record({ namespace, selector: labels })),
        namespace,
        labels,
        (items, queried, drawnLabels) => {
          let index = new SelectorIndex<number>();
          for (const [item, { namespace, selector }] of items.entries()) {
            index = index.withItem(namespace, { id: `${item}`, selector, item });
          }
          const matchingItems = (): number[] =>
            index
              .itemsSelecting(queried, drawnLabels)
              .map(({ item }) => item)
              .toSorted();
          const expected = [...items.keys()].filter(
            (item) => items[item]!.namespace === queried && matchesSelector(items[item]!.selector, drawnLabels),
          );
          expect(matchingItems()).toEqual(expected);
          for (const item of expected)
            index = index.withoutItem(queried, { id: `${item}`, selector: items[item]!.selector });
          expect(matchingItems()).toEqual([]);
        },
      ),
    );
  });
});
