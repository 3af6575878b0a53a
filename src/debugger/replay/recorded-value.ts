import { isCutText, lengthBeforeCut } from './compare-records.ts';

/**
 * A recorded value, made ready to be given to a machine once more. A list that the trace cut gets its length back: what is
 * counted is then counted right, though what the missing items were is not known.
 *
 * @param onCut called with the place (a JSON Pointer) of everything that was cut
 */
export function givenAgain(value: unknown, onCut: (place: string) => void, place = ''): unknown {
  if (typeof value === 'string') {
    if (isCutText(value)) onCut(place);
    return value;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const length = lengthBeforeCut(value);
    const kept = length === undefined ? value : value.slice(0, -1);
    const items = kept.map((item, i) => givenAgain(item, onCut, `${place}/${i}`));
    if (length === undefined) return items;
    onCut(place);
    return [...items, ...Array.from({ length: length - items.length }, (_, i) => standIn(items, i))];
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, givenAgain(item, onCut, `${place}/${key}`)]),
  );
}

/** Of the kind that the list holds: a machine reads fields of its items. */
function standIn(items: readonly unknown[], i: number): unknown {
  const last = items.at(-1);
  return typeof last === 'object' && last !== null ? structuredClone(last) : `missing ${i + 1}`;
}
