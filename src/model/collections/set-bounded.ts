/** Clears the cache first if a new entry would exceed the limit. */
export function setBounded<K, V>(map: Map<K, V>, key: K, value: V, maxSize: number): void {
  if (map.size >= maxSize && !map.has(key)) map.clear();
  map.set(key, value);
}
