/**
 * Key of an address within a namespace. Workloads are looked up by address only within one namespace, because tenants choose the addresses of their
 * ServiceEntries, EndpointSlices and WorkloadEntries and, with access to `pods/status`, of their pods.
 */
export function addressIn(namespace: string, address: string): string {
  return `${namespace}/${address}`;
}
