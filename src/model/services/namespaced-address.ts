/** Addresses are looked up only within one namespace, because tenants choose the addresses of their objects and pods. */
export function addressIn(namespace: string, address: string): string {
  return `${namespace}/${address}`;
}
