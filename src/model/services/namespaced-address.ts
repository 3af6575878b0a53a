/**
 * Key of an address within a namespace. Workloads are looked up by address in one namespace only: a tenant chooses the addresses of
 * its ServiceEntries, EndpointSlices and WorkloadEntries, and with access to `pods/status` those of its pods.
 */
export function addressIn(namespace: string, address: string): string {
  return `${namespace}/${address}`;
}
