/** A link-local address is assigned by the interface itself, so it does not show how other hosts reach this host. */
export function isLinkLocal(address: string): boolean {
  return address.startsWith('169.254.') || /^fe[89ab][0-9a-f]:/i.test(address);
}
