import { isCutText, lengthBeforeCut } from './compare-records.ts';

/**
 * A truncated list gets its original length, so that counts are correct although the missing items are unknown.
 *
 * @param onCut called with the JSON Pointer of every truncated value
 */
export function completedValue(value: unknown, onCut: (path: string) => void, path = ''): unknown {
  if (typeof value === 'string') {
    if (isCutText(value)) onCut(path);
    return value;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const length = lengthBeforeCut(value);
    const keptItems = length === undefined ? value : value.slice(0, -1);
    const items = keptItems.map((item, i) => completedValue(item, onCut, `${path}/${i}`));
    if (length === undefined) return items;
    onCut(path);
    return [...items, ...Array.from({ length: length - items.length }, (_, i) => standIn(items, i))];
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, completedValue(item, onCut, `${path}/${key}`)]),
  );
}

/** An item of the same kind as the others, because a machine reads fields of its items. */
function standIn(items: readonly unknown[], i: number): unknown {
  const lastItem = items.at(-1);
  return typeof lastItem === 'object' && lastItem !== null ? structuredClone(lastItem) : `missing ${i + 1}`;
}
