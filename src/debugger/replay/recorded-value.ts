import { isCutText, lengthBeforeTruncation } from './compare-records.ts';

/**
 * A truncated list gets its original length, so that counts are correct although the missing items are unknown.
 *
 * @param onTruncation called with the JSON Pointer of every truncated value
 */
export function completedValue(value: unknown, onTruncation: (path: string) => void, path = ''): unknown {
  if (typeof value === 'string') {
    if (isCutText(value)) onTruncation(path);
    return value;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const length = lengthBeforeTruncation(value);
    const keptItems = length === undefined ? value : value.slice(0, -1);
    const items = keptItems.map((item, i) => completedValue(item, onTruncation, `${path}/${i}`));
    if (length === undefined) return items;
    onTruncation(path);
    return [...items, ...Array.from({ length: length - items.length }, (_, i) => placeholderOf(items, i))];
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, completedValue(item, onTruncation, `${path}/${key}`)]),
  );
}

/** An item of the same kind as the others, because a machine reads fields of its items. */
function placeholderOf(items: readonly unknown[], i: number): unknown {
  const lastItem = items.at(-1);
  return typeof lastItem === 'object' && lastItem !== null ? structuredClone(lastItem) : `missing ${i + 1}`;
}
