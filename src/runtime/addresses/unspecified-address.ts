/** Whether an address stands for every address of its family: `0.0.0.0` or `::`, which a socket may be bound to and nobody can be reached at. */
export function isUnspecified(address: string): boolean {
  return address === '0.0.0.0' || address === '::';
}
