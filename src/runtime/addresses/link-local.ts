/**
 * Whether an address is link-local. An interface assigns it to itself, so it does not show how other hosts reach this
 * one.
 */
export function isLinkLocal(address: string): boolean {
  return address.startsWith('169.254.') || /^fe[89ab][0-9a-f]:/i.test(address);
}
