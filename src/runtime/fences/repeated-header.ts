/**
 * Headers that identify a client or the site that it comes from: a request may have each of them once. Node keeps the first line of
 * some, and joins the lines of others, so what a proxy in front of this program read may be another line.
 */
const singleHeaders: ReadonlySet<string> = new Set([
  ...['authorization', 'proxy-authorization', 'clusterid', 'x-forwarded-client-cert'],
  ...['host', 'origin', 'sec-fetch-site', 'sec-fetch-mode', 'sec-fetch-dest'],
]);

/**
 * @param rawHeaders name, value, name, value …, as Node's HTTP/1 and HTTP/2 servers give them
 * @returns the name of the first such header that is there more than once
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
