/** Which addresses this proxy has (spec/agent.md §1.4). */

import { isIP } from 'node:net';
import { type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { isLinkLocal } from '../../runtime/addresses/link-local.ts';
import { isUnspecified } from '../../runtime/addresses/unspecified-address.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';

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
 * @param excluded names of interfaces that are not this proxy's, with commas between
 */
export function proxyAddresses(
  instanceIp: string | undefined,
  excluded = '',
  interfaces: NodeJS.Dict<NetworkInterfaceInfo[]> = networkInterfaces(),
): string[] {
  const found = new Set<string>();
  const others = new Set(excluded.split(',').map((name) => name.trim()));
  const own = Object.entries(interfaces).flatMap(([name, entries]) => (others.has(name) ? [] : (entries ?? [])));
  if (instanceIp !== undefined && isIP(instanceIp) !== 0) found.add(instanceIp);
  for (const { address, internal } of own) {
    if (!internal && !isLinkLocal(address) && !isUnspecified(address)) found.add(address);
  }
  return found.size > 0 ? [...found] : ['127.0.0.1', '::1'];
}

/** IPv6 only when every address is. */
export function localAddresses(addresses: readonly string[]): LocalAddresses {
  // An IPv4 address is known by the shorter of two expressions; the other one takes 4 ms to be made ready.
  return addresses.every((address) => isIP(address) === 6)
    ? { localhost: '::1', wildcard: '::', ipVersion: 'v6' }
    : { localhost: '127.0.0.1', wildcard: '0.0.0.0', ipVersion: 'v4' };
}

const addressLimitMs = 120_000;
const addressPollMs = 100;

/**
 * An interface whose address is still to come has an unspecified one meanwhile: the name of the proxy would be made of others.
 *
 * @returns a warning if it has not come in two minutes
 */
export async function awaitAddresses(
  interfaces: () => NodeJS.Dict<NetworkInterfaceInfo[]> = networkInterfaces,
  limitMs = addressLimitMs,
): Promise<LogWarning | undefined> {
  const until = performance.now() + limitMs;
  for (;;) {
    const waiting = Object.entries(interfaces()).flatMap(([name, entries]) =>
      entries?.some(({ address, internal }) => !internal && isUnspecified(address)) ? [name] : [],
    );
    if (waiting.length === 0) return undefined;
    if (performance.now() >= until) {
      return { event: 'option.addressMissing', interfaces: waiting.join(', '), waitedMs: limitMs };
    }
    await sleep(addressPollMs);
  }
}
