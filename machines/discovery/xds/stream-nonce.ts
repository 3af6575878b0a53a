/** @param connection number of the stream, unique in this program */
export function nonceOf(version: string, connection: number, response: number): string {
  return `${version}/${connection}-${response}`;
}

/**
 * Whether a nonce may belong to this stream. Clients may send others in a first request: Istio's client (`pkg/adsc`) sends the time of day.
 */
export function isNonceOfConnection(nonce: string, connection: number): boolean {
  const [prefix, count] = [`${connection}-`, nonce.slice(nonce.lastIndexOf('/') + 1)];
  return nonce.includes('/') && count.startsWith(prefix) && /^\d+$/.test(count.slice(prefix.length));
}
