import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isSelected, LabelIndex } from './label-match.ts';

describe('a label index', () => {
  it('finds what trying every item would find, in the same order', () => {
    const labels = fc.dictionary(fc.constantFrom('a', 'b'), fc.constantFrom('1', '2'));
    fc.assert(
      fc.property(fc.array(fc.record({ labels })), labels, (items, selector) => {
        expect(new LabelIndex(items).selectedBy(selector)).toEqual(
          items.filter((item) => isSelected(selector, item.labels)),
        );
      }),
    );
  });

  it('finds everything with an empty selector', () => {
    expect(new LabelIndex([{ labels: {} }]).selectedBy({})).toHaveLength(1);
  });
});
