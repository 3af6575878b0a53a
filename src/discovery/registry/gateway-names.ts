import { Resolver } from 'node:dns/promises';
import type { NameResolution } from '../../../machines/discovery/registry/gateway-name.machine.ts';
import { messageOf } from '../../runtime/errors.ts';

export type ResolveName = (hostname: string, signal: AbortSignal) => Promise<NameResolution>;

/** The chart `gateway-name` decides when to resolve the tracked names. */
export class GatewayNames {
  readonly #onChanged: () => void;
  readonly #listeners = new Set<(hostnames: ReadonlySet<string>) => void>();
  readonly #addresses = new Map<string, readonly string[]>();
  #trackedNames: ReadonlySet<string> = new Set();

  constructor(onChanged: () => void) {
    this.#onChanged = onChanged;
  }

  /** Sorted. Empty until the name is resolved. */
  addressesOf(hostname: string): readonly string[] {
    return this.#addresses.get(hostname) ?? [];
  }

  track(hostnames: ReadonlySet<string>): void {
    const previous = this.#trackedNames;
    if (hostnames.size === previous.size && [...hostnames].every((hostname) => previous.has(hostname))) return;
    this.#trackedNames = hostnames;
    for (const hostname of this.#addresses.keys()) if (!hostnames.has(hostname)) this.#addresses.delete(hostname);
    for (const listener of this.#listeners) listener(hostnames);
  }

  /** The listener is called immediately if names are tracked, and when they change. */
  onTrackedChanged(listener: (hostnames: ReadonlySet<string>) => void): () => void {
    this.#listeners.add(listener);
    if (this.#trackedNames.size > 0) listener(this.#trackedNames);
    return () => void this.#listeners.delete(listener);
  }

  setAddresses(hostname: string, addresses: readonly string[]): void {
    if (!this.#trackedNames.has(hostname)) return;
    this.#addresses.set(hostname, addresses);
    this.#onChanged();
  }
}

export async function resolveByDns(hostname: string, signal: AbortSignal): Promise<NameResolution> {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 });
  const cancel = (): void => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    return mergeDnsResults(
      await Promise.allSettled([
        resolver.resolve4(hostname, { ttl: true }),
        resolver.resolve6(hostname, { ttl: true }),
      ]),
    );
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

/** One address family is sufficient. */
export function mergeDnsResults(
  results: readonly PromiseSettledResult<readonly { readonly address: string; readonly ttl: number }[]>[],
): NameResolution {
  const records = results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
  if (records.length === 0) {
    const reasons = results.flatMap((result) => (result.status === 'rejected' ? [messageOf(result.reason)] : []));
    return { outcome: 'failed', reason: reasons.join('; ') || 'the name has no address' };
  }
  const addresses = [...new Set(records.map(({ address }) => address))].sort();
  return { outcome: 'resolved', addresses, timeToLiveMs: Math.min(...records.map(({ ttl }) => ttl)) * 1000 };
}
