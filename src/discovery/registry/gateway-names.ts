/** Host names of networks' gateways, and what they resolve to (spec/discovery.md §3.3, RESOLVE_HOSTNAME_GATEWAYS). */
import { Resolver } from 'node:dns/promises';
import type { NameAnswer } from '../../../machines/discovery/registry/gateway-name.machine.ts';
import { messageOf } from '../../runtime/errors.ts';

export type ResolveName = (hostname: string, signal: AbortSignal) => Promise<NameAnswer>;

/** Which names are wanted, and the addresses in force. When they are asked for, the chart gateway-name decides. */
export class GatewayNames {
  readonly #changed: () => void;
  readonly #listeners = new Set<(hostnames: ReadonlySet<string>) => void>();
  readonly #addresses = new Map<string, readonly string[]>();
  #wanted: ReadonlySet<string> = new Set();

  /** @param changed called when a name has other addresses than it had */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /** The addresses of a name, sorted; none until they are known. */
  addressesOf(hostname: string): readonly string[] {
    return this.#addresses.get(hostname) ?? [];
  }

  /** These names are kept up to date from now on; others are forgotten. */
  want(hostnames: ReadonlySet<string>): void {
    const before = this.#wanted;
    if (hostnames.size === before.size && [...hostnames].every((hostname) => before.has(hostname))) return;
    this.#wanted = hostnames;
    for (const hostname of this.#addresses.keys()) if (!hostnames.has(hostname)) this.#addresses.delete(hostname);
    for (const listener of this.#listeners) listener(hostnames);
  }

  /** Called at once if there are any, and whenever other names are wanted. Returns how to end that. */
  onWanted(listener: (hostnames: ReadonlySet<string>) => void): () => void {
    this.#listeners.add(listener);
    if (this.#wanted.size > 0) listener(this.#wanted);
    return () => void this.#listeners.delete(listener);
  }

  /** Addresses that are others than before, as the name's chart has found; a late answer changes nothing. */
  adopt(hostname: string, addresses: readonly string[]): void {
    if (!this.#wanted.has(hostname)) return;
    this.#addresses.set(hostname, addresses);
    this.#changed();
  }
}

/** Asks the system's DNS servers for both families. */
export async function resolveByDns(hostname: string, signal: AbortSignal): Promise<NameAnswer> {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 });
  const cancel = (): void => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    return answerOf(
      await Promise.allSettled([
        resolver.resolve4(hostname, { ttl: true }),
        resolver.resolve6(hostname, { ttl: true }),
      ]),
    );
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}

/** What two answers say together: of one family is enough. */
export function answerOf(
  answers: readonly PromiseSettledResult<readonly { readonly address: string; readonly ttl: number }[]>[],
): NameAnswer {
  const records = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (records.length === 0) {
    const reasons = answers.flatMap((answer) => (answer.status === 'rejected' ? [messageOf(answer.reason)] : []));
    return { outcome: 'failed', reason: reasons.join('; ') || 'the name has no address' };
  }
  const addresses = [...new Set(records.map(({ address }) => address))].sort();
  return { outcome: 'resolved', addresses, timeToLiveMs: Math.min(...records.map(({ ttl }) => ttl)) * 1000 };
}
