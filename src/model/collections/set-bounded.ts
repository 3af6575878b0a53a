/** Sets an entry of a memory that is not to grow: where a new one would be one too many, all that was kept is forgotten. */
export function setBounded<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  if (map.size >= most && !map.has(key)) map.clear();
  map.set(key, value);
}
