/** Removes the oldest entry of a map that exceeds its limit by one. */
export function dropOldest<Key>(map: Map<Key, unknown>, maxEntries: number): void {
  if (map.size <= maxEntries) return;
  for (const oldestKey of map.keys()) {
    map.delete(oldestKey);
    return;
  }
}

/** Adds an entry to the end of a map, or moves it there, and removes the oldest one beyond the limit. */
export function setAsNewest<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, maxEntries: number): void {
  map.delete(key);
  map.set(key, value);
  dropOldest(map, maxEntries);
}
