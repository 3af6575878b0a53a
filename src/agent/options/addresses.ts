import { isIP } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLinkLocal } from '../../runtime/addresses/link-local.ts';
import { isUnspecified } from '../../runtime/addresses/unspecified-address.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';

export interface LocalAddresses {
  readonly localhost: '127.0.0.1' | '::1';
  readonly wildcard: '0.0.0.0' | '::';
  /** Envoy's --local-address-ip-version. */
  readonly ipVersion: 'v4' | 'v6';
}

/**
 * The instance address comes first. Omits loopback and link-local addresses of the interfaces, unless there are no others.
 *
 * @param instanceIp `INSTANCE_IP` or `--ip`; ignored if invalid
 */
export function proxyAddresses(
  instanceIp: string | undefined,
  excludedInterfaces = '',
  interfaces: NodeJS.Dict<NetworkInterfaceInfo[]> = networkInterfaces(),
): string[] {
  const uniqueAddresses = new Set<string>();
  const excludedNames = new Set(excludedInterfaces.split(',').map((name) => name.trim()));
  const includedAddresses = Object.entries(interfaces).flatMap(([name, entries]) =>
    excludedNames.has(name) ? [] : (entries ?? []),
  );
  if (instanceIp !== undefined && isIP(instanceIp) !== 0) uniqueAddresses.add(instanceIp);
  for (const { address, internal } of includedAddresses) {
    if (!internal && !isLinkLocal(address) && !isUnspecified(address)) uniqueAddresses.add(address);
  }
  return uniqueAddresses.size > 0 ? [...uniqueAddresses] : ['127.0.0.1', '::1'];
}

export function localAddresses(addresses: readonly string[]): LocalAddresses {
  // Testing for 6 is faster for IPv4 addresses: the regular expression of IPv6 takes 4 ms to compile.
  return addresses.every((address) => isIP(address) === 6)
    ? { localhost: '::1', wildcard: '::', ipVersion: 'v6' }
    : { localhost: '127.0.0.1', wildcard: '0.0.0.0', ipVersion: 'v4' };
}

const addressLimitMs = 120_000;
const addressPollMs = 100;

/** @returns a warning if an address is missing after two minutes */
export async function awaitAddresses(
  interfaces: () => NodeJS.Dict<NetworkInterfaceInfo[]> = networkInterfaces,
  limitMs = addressLimitMs,
): Promise<LogWarning | undefined> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const tentativeAddresses = Object.entries(interfaces()).flatMap(([name, entries]) =>
      entries?.some(({ address, internal }) => !internal && isUnspecified(address)) ? [name] : [],
    );
    if (tentativeAddresses.length === 0) return undefined;
    if (performance.now() >= deadline) {
      return { event: 'option.addressMissing', interfaces: tentativeAddresses.join(', '), waitedMs: limitMs };
    }
    await sleep(addressPollMs);
  }
}
