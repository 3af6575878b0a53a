const defaultMaxResults = 4_096;

/**
 * Caches the results of a function of a text. At the limit, all of them are dropped.
 *
 * @param maxResults limits the memory; pass texts of limited length
 */
export function cachedFunction<Result>(
  compute: (text: string) => Result,
  maxResults = defaultMaxResults,
): (text: string) => Result {
  const results = new Map<string, Result>();
  return (text) => {
    const remembered = results.get(text);
    if (remembered !== undefined || results.has(text)) return remembered as Result;
    if (results.size >= maxResults) results.clear();
    const result = compute(text);
    results.set(text, result);
    return result;
  };
}
