/** Which fields of plain data are opened without being asked for: a payload may have a million of them. */

/** Longer lists and objects begin closed. */
const openUpTo = 12;
/** Entries of one list or object that are shown. */
export const maxJsonEntries = 200;
/** Fields that are shown before anything is opened by hand. */
export const maxOpenedFields = 400;

/** JSON Pointers of what is new, with what was there before. */
export type Marked = ReadonlyMap<string, unknown>;

/** How many entries a list or object has. */
export function entryCount(value: object): number {
  return Array.isArray(value) ? value.length : Object.keys(value).length;
}

/** The first entries of a list or object, at most {@link maxJsonEntries}. */
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

/** Pointers of the lists and objects below a value that are open at first: short ones, and those with something new. */
export function openedAtFirst(value: object, path: string, marked: Marked | undefined): ReadonlySet<string> {
  const withNew = new Set<string>();
  for (const pointer of marked?.keys() ?? []) {
    for (let end = pointer.length; end > 0; end = pointer.lastIndexOf('/', end - 1)) withNew.add(pointer.slice(0, end));
  }
  const opened = new Set<string>();
  let room = maxOpenedFields;
  // Level by level: what is near the top is opened first.
  let level: (readonly [string, object])[] = [[path, value]];
  while (level.length > 0) {
    const next: (readonly [string, object])[] = [];
    for (const [outer, container] of level) {
      for (const [key, field] of shownEntries(container)) {
        if (typeof field !== 'object' || field === null) continue;
        const pointer = pointerTo(outer, key);
        const count = Math.min(entryCount(field), maxJsonEntries);
        if (count > room || (count > openUpTo && !withNew.has(pointer))) continue;
        room -= count;
        opened.add(pointer);
        next.push([pointer, field]);
      }
    }
    level = next;
  }
  return opened;
}
