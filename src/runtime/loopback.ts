/** Whether the address of a connection's end is this host's own: `127.…`, also as IPv6 writes it, or `::1`. */
export function isLoopback(address: string | undefined): boolean {
  return address !== undefined && /^(::ffff:)?127\.|^::1$/.test(address);
}
