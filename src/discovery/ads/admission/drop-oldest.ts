/** Drops the entry of a map that was set first, when there are more than so many: what strangers bring has a bound. */
export function dropOldest<Key>(map: Map<Key, unknown>, most: number): void {
  if (map.size <= most) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
