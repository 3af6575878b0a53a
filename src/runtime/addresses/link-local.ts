/** Whether an address is of one link alone: an interface gives it to itself, and it tells nothing of how others reach this host. */
export function isLinkLocal(address: string): boolean {
  return address.startsWith('169.254.') || /^fe[89ab][0-9a-f]:/i.test(address);
}
