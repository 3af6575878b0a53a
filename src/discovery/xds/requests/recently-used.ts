import { LRUCache } from 'lru-cache';

/**
 * LRU cache with a limit in bytes that always keeps the newest entry. lru-cache would reject an entry beyond the limit, but caching the largest
 * bodies saves the most.
 */
export function keepRecentlyUsed<Key extends {}, Value extends {}>(
  maxBytes: number,
  bytesOf: (value: Value, key: Key) => number,
): LRUCache<Key, Value> {
  return new LRUCache({ maxSize: maxBytes, sizeCalculation: (value, key) => Math.min(bytesOf(value, key), maxBytes) });
}
