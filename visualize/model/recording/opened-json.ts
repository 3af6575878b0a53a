/** Limits the drawn fields of a payload, which may have a million fields. */

/** Larger lists and objects are closed initially. */
const maxOpenEntries = 12;
export const maxJsonEntries = 200;
export const maxOpenedFields = 400;

export type MarkedPaths = ReadonlyMap<string, unknown>;

export function entryCount(value: object): number {
  return Array.isArray(value) ? value.length : Object.keys(value).length;
}

export function shownEntries(value: object): (readonly [string, unknown])[] {
  if (Array.isArray(value)) return value.slice(0, maxJsonEntries).map((item: unknown, i) => [String(i), item]);
  const fields = value as Readonly<Record<string, unknown>>;
  return Object.keys(fields)
    .slice(0, maxJsonEntries)
    .map((key) => [key, fields[key]]);
}

export function pointerTo(path: string, key: string): string {
  return `${path}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/** Short lists and objects are initially open, and those with a new value. */
export function initiallyOpenedPaths(
  value: object,
  path: string,
  markedPaths: MarkedPaths | undefined,
): ReadonlySet<string> {
  const withNew = new Set<string>();
  for (const pointer of markedPaths?.keys() ?? []) {
    for (let end = pointer.length; end > 0; end = pointer.lastIndexOf('/', end - 1)) withNew.add(pointer.slice(0, end));
  }
  const openedPaths = new Set<string>();
  let remainingFields = maxOpenedFields;
  // Level by level, so that fields near the top are opened first.
  let level: (readonly [string, object])[] = [[path, value]];
  while (level.length > 0) {
    const nextLevel: (readonly [string, object])[] = [];
    for (const [parentPath, container] of level) {
      for (const [key, field] of shownEntries(container)) {
        if (typeof field !== 'object' || field === null) continue;
        const pointer = pointerTo(parentPath, key);
        const count = Math.min(entryCount(field), maxJsonEntries);
        if (count > remainingFields || (count > maxOpenEntries && !withNew.has(pointer))) continue;
        remainingFields -= count;
        openedPaths.add(pointer);
        nextLevel.push([pointer, field]);
      }
    }
    level = nextLevel;
  }
  return openedPaths;
}
