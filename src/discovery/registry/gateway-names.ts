/** Host names of networks' gateways, resolved and kept resolved (spec/discovery.md §3.3, RESOLVE_HOSTNAME_GATEWAYS). */
import { Resolver } from 'node:dns/promises';

export interface ResolvedName {
  readonly addresses: readonly string[];
  readonly ttlMs: number;
}

export type ResolveName = (hostname: string) => Promise<ResolvedName>;

/** An answer holds for its time to live, and at least this long. */
export const minAnswerMs = 30_000;

interface Known {
  addresses: readonly string[];
  timer: NodeJS.Timeout | undefined;
}

/**
 * Answers at once with what it knows and asks in the background. A name that does not resolve any more keeps its last
 * addresses: a broken DNS server must not cut networks off from each other.
 */
export class GatewayNames {
  readonly #resolve: ResolveName;
  readonly #changed: () => void;
  readonly #known = new Map<string, Known>();

  /** @param changed called when a name has other addresses than it had */
  constructor(resolve: ResolveName, changed: () => void) {
    this.#resolve = resolve;
    this.#changed = changed;
  }

  /** The addresses of a name, sorted; none until they are known. From now on they are kept up to date. */
  addressesOf(hostname: string): readonly string[] {
    const known = this.#known.get(hostname);
    if (known !== undefined) return known.addresses;
    const asked: Known = { addresses: [], timer: undefined };
    this.#known.set(hostname, asked);
    void this.#ask(hostname, asked);
    return asked.addresses;
  }

  /** Names that nobody asks for any more are forgotten. */
  keepOnly(hostnames: ReadonlySet<string>): void {
    for (const [hostname, { timer }] of this.#known) {
      if (hostnames.has(hostname)) continue;
      clearTimeout(timer);
      this.#known.delete(hostname);
    }
  }

  stop(): void {
    this.keepOnly(new Set());
  }

  async #ask(hostname: string, known: Known): Promise<void> {
    let waitMs = minAnswerMs;
    try {
      const { addresses, ttlMs } = await this.#resolve(hostname);
      waitMs = Math.max(ttlMs, minAnswerMs);
      this.#adopt(hostname, known, addresses.toSorted());
    } catch {
      // The last addresses stay in force; it is asked again.
    }
    if (this.#known.get(hostname) !== known) return;
    known.timer = setTimeout(() => void this.#ask(hostname, known), waitMs);
    known.timer.unref();
  }

  #adopt(hostname: string, known: Known, addresses: readonly string[]): void {
    if (this.#known.get(hostname) !== known || addresses.join() === known.addresses.join()) return;
    known.addresses = addresses;
    this.#changed();
  }
}

/** Asks the system's DNS servers for both families. */
export async function resolveByDns(hostname: string): Promise<ResolvedName> {
  const resolver = new Resolver({ timeout: 2_000, tries: 2 });
  const answers = await Promise.allSettled([
    resolver.resolve4(hostname, { ttl: true }),
    resolver.resolve6(hostname, { ttl: true }),
  ]);
  const records = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
  if (records.length === 0) throw new Error(`${hostname} does not resolve`);
  const ttlMs = Math.min(...records.map(({ ttl }) => ttl)) * 1000;
  return { addresses: records.map(({ address }) => address), ttlMs };
}
