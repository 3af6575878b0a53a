/** `0.0.0.0` or `::`, to which a socket can bind but not connect. */
export function isUnspecified(address: string): boolean {
  return address === '0.0.0.0' || address === '::';
}
