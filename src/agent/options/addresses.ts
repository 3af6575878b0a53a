/** Which addresses this proxy has (spec/agent.md §1.4). */
import { isIP, isIPv6 } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';

/** The names under which Envoy and the agent reach each other on this host. */
export interface LocalAddresses {
  readonly localhost: '127.0.0.1' | '::1';
  readonly wildcard: '0.0.0.0' | '::';
  /** Envoy's --local-address-ip-version. */
  readonly ipVersion: 'v4' | 'v6';
}

/**
 * The proxy's own address first, then those of the host's interfaces, each once. Loopback and link-local addresses tell a
 * control plane nothing and are left out; a host that has no others is known by its loopback addresses.
 *
 * @param instanceIp `INSTANCE_IP`, or `--ip`; ignored when it is no address
 */
export function proxyAddresses(
  instanceIp: string | undefined,
  interfaces: NodeJS.Dict<NetworkInterfaceInfo[]> = networkInterfaces(),
): string[] {
  const found = new Set<string>();
  if (instanceIp !== undefined && isIP(instanceIp) !== 0) found.add(instanceIp);
  for (const { address, internal } of Object.values(interfaces).flatMap((entries) => entries ?? [])) {
    if (!internal && !isLinkLocal(address)) found.add(address);
  }
  return found.size > 0 ? [...found] : ['127.0.0.1', '::1'];
}

/** IPv6 only when every address is. */
export function localAddresses(addresses: readonly string[]): LocalAddresses {
  return addresses.every((address) => isIPv6(address))
    ? { localhost: '::1', wildcard: '::', ipVersion: 'v6' }
    : { localhost: '127.0.0.1', wildcard: '0.0.0.0', ipVersion: 'v4' };
}

function isLinkLocal(address: string): boolean {
  return address.startsWith('169.254.') || /^fe[89ab][0-9a-f]:/i.test(address);
}
