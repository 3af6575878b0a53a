/** Drops the entry of a map that was set first, when there are more than so many: what strangers bring has a bound. */
export function dropOldest<Key>(map: Map<Key, unknown>, most: number): void {
  if (map.size <= most) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}

/** Sets an entry so that it is the newest, and drops the oldest when there are more than so many. */
export function setNewest<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, most: number): void {
  map.delete(key);
  map.set(key, value);
  dropOldest(map, most);
}
