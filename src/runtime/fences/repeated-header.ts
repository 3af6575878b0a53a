/**
 * Headers that identify a client or its site, of which a request may have one each. Node uses the first line of some
 * and joins the lines of others, so a proxy in front of this program may have read another line.
 */
const singleHeaders: ReadonlySet<string> = new Set([
  ...['authorization', 'proxy-authorization', 'clusterid', 'x-forwarded-client-cert'],
  ...['host', 'origin', 'sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest'],
]);

/**
 * @param rawHeaders name, value, name, value …, as Node's HTTP/1 and HTTP/2 servers return them
 * @returns the name of the first such header that is repeated
 */
export function repeatedHeader(rawHeaders: readonly unknown[]): string | undefined {
  const seen = new Set<string>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = String(rawHeaders[at]).toLowerCase();
    if (!singleHeaders.has(name)) continue;
    if (seen.has(name)) return name;
    seen.add(name);
  }
  return undefined;
}
