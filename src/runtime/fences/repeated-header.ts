/** Headers that identify a client or its site, of which a request may have one each. */
const singleHeaders: ReadonlySet<string> = new Set([
  ...['authorization', 'proxy-authorization', 'clusterid', 'x-forwarded-client-cert'],
  ...['host', 'origin', 'sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest'],
]);

/** @param rawHeaders name, value, name, value …, as Node's servers return them */
export function repeatedHeader(rawHeaders: readonly unknown[]): string | undefined {
  const seenNames = new Set<string>();
  for (let headerIndex = 0; headerIndex < rawHeaders.length; headerIndex += 2) {
    const name = String(rawHeaders[headerIndex]).toLowerCase();
    if (!singleHeaders.has(name)) continue;
    if (seenNames.has(name)) return name;
    seenNames.add(name);
  }
  return undefined;
}
