/** Nonces of responses. They name their stream, so that an answer to one is recognised by the nonce alone. */

/**
 * @param version `version_info` of the response
 * @param connection number of the stream, unique in this program
 * @param response counts the responses of the stream
 */
export function nonceOf(version: string, connection: number, response: number): string {
  return `${version}/${connection}-${response}`;
}

/**
 * Whether a nonce may be of a response of this stream. Clients may send another one in a first request: Istio's client (`pkg/adsc`) takes
 * the time of day.
 */
export function isNonceOf(nonce: string, connection: number): boolean {
  const [prefix, count] = [`${connection}-`, nonce.slice(nonce.lastIndexOf('/') + 1)];
  return nonce.includes('/') && count.startsWith(prefix) && /^\d+$/.test(count.slice(prefix.length));
}
