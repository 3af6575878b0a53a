/** Results that are remembered by one function. */
const defaultMaxResults = 4_096;

/**
 * A function of a text whose results are remembered, up to a limit: then all of them are forgotten.
 *
 * @param maxResults bounds the memory; give texts of bounded length
 */
export function remembering<Result>(
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
