/** Drops the oldest entry of a map beyond a limit. */
export function dropOldest<Key>(map: Map<Key, unknown>, maxEntries: number): void {
  if (map.size <= maxEntries) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}

/** Sets an entry as the newest, and drops the oldest one beyond a limit. */
export function setNewest<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, maxEntries: number): void {
  map.delete(key);
  map.set(key, value);
  dropOldest(map, maxEntries);
}
