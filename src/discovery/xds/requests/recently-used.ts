import { LRUCache } from 'lru-cache';

/**
 * Keeps what was used last, up to a number of bytes; the last one in any case: lru-cache would not take what is larger than
 * the whole, and the largest bodies are those that are worth most. Such a one counts as the whole, and has it to itself.
 *
 * @param bytesOf a positive integer
 */
export function keepRecentlyUsed<Key extends {}, Value extends {}>(
  maxBytes: number,
  bytesOf: (value: Value, key: Key) => number,
): LRUCache<Key, Value> {
  return new LRUCache({ maxSize: maxBytes, sizeCalculation: (value, key) => Math.min(bytesOf(value, key), maxBytes) });
}
