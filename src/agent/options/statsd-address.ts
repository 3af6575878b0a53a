/** Envoy requires an address of the statsd server, not a host name. */

import { lookup as lookupName } from 'node:dns/promises';
import { isIP } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseHostAndPort } from '../../model/mesh/proxy-config.ts';
import { messageOf } from '../../runtime/errors.ts';
import type { LogWarning } from '../../runtime/log-events/log-events.ts';
import type { ProxyOptions } from './options.ts';

const limitMs = 15_000;

/** If the name cannot be resolved, warns and disables statsd. */
export async function withStatsdAddress(
  options: ProxyOptions,
  lookup: (host: string) => Promise<{ readonly address: string }> = lookupName,
): Promise<ProxyOptions> {
  const { statsdUdpAddress, ...config } = options.config;
  const target = statsdUdpAddress === undefined ? undefined : parseHostAndPort(statsdUdpAddress);
  if (target === undefined || isIP(target.host) !== 0) return options;
  const limit = new AbortController();
  const timeout = sleep(limitMs, undefined, { signal: limit.signal }).then(() => {
    throw new Error(`timed out after ${limitMs / 1000} s`);
  });
  try {
    const { address } = await Promise.race([lookup(target.host), timeout]);
    const host = isIP(address) === 6 ? `[${address}]` : address;
    return { ...options, config: { ...config, statsdUdpAddress: `${host}:${target.port}` } };
  } catch (error) {
    const reason = messageOf(error);
    const warning: LogWarning = { event: 'option.statsdUnresolved', address: statsdUdpAddress, reason };
    return { ...options, config, warnings: [...options.warnings, warning] };
  } finally {
    limit.abort();
    timeout.catch(() => {});
  }
}
