const defaultMaxResults = 4_096;

/**
 * At the limit, all results are dropped.
 * @param maxResults limits the memory; pass texts of limited length
 */
export function cachedFunction<Result>(
  compute: (text: string) => Result,
  maxResults = defaultMaxResults,
): (text: string) => Result {
  const results = new Map<string, Result>();
  return (text) => {
    const cachedResult = results.get(text);
    if (cachedResult !== undefined || results.has(text)) return cachedResult as Result;
    if (results.size >= maxResults) results.clear();
    const result = compute(text);
    results.set(text, result);
    return result;
  };
}
