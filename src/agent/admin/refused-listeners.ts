/**
 * Listeners that an Envoy was sent and does not have, because it refused them. `/ready` says LIVE all the same: Envoy counts
 * its first configuration as received, refused or not (measured with 1.40: `error_state` without `active_state`).
 *
 * What an epoch lacks from its start on is what makes it not ready. Not so a listener that was refused later: what it has
 * serves, and one mistake of many tenants takes no gateway out of service. Nor one that the epoch before lacked, too.
 */
import type { AdminClient } from './admin-client.ts';

export interface RefusedListener {
  readonly name: string;
  readonly why: string;
}

/** Without the configurations themselves: a few bytes a listener. */
const fields = ['name', 'error_state.details', 'error_state.last_update_attempt', 'active_state.version_info'];
const path = `/config_dump?resource=dynamic_listeners&mask=${[...fields, 'active_state.last_updated', 'warming_state.last_updated'].join(',')}`;
const limitMs = 2_000;
const longestWhy = 300;

/** @returns undefined when Envoy does not say; never rejects */
export async function askRefusedListeners(admin: Pick<AdminClient, 'get'>): Promise<RefusedListener[] | undefined> {
  try {
    const { status, body } = await admin.get(path, limitMs);
    return status === 200 ? refusedAmong(JSON.parse(body)) : undefined;
  } catch {
    return undefined;
  }
}

/** Nothing is taken for granted of what answers at the port. */
function refusedAmong(dump: unknown): RefusedListener[] | undefined {
  const configs = fieldOf(dump, 'configs');
  // Proto JSON leaves out an empty list.
  if (configs === undefined) return typeof dump === 'object' && dump !== null ? [] : undefined;
  if (!Array.isArray(configs)) return undefined;
  return configs.flatMap((listener: unknown) => {
    const name = fieldOf(listener, 'name');
    const error = fieldOf(listener, 'error_state');
    if (typeof name !== 'string' || name === '' || typeof error !== 'object' || error === null) return [];
    const serves = fieldOf(listener, 'active_state') !== undefined || fieldOf(listener, 'warming_state') !== undefined;
    return serves ? [] : [{ name, why: String(fieldOf(error, 'details') ?? '').slice(0, longestWhy) }];
  });
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

/** For a listener that nothing was found lacking, so rarely is enough. */
const lookAgainMs = 10_000;

/** What the Envoy that serves lacks from its start on, looked at while somebody asks. */
export class LackingListeners {
  readonly #now: () => number;
  /** By name; undefined before the first answer of this epoch. */
  #lacking: ReadonlyMap<string, string> | undefined;
  /** All that the epoch refuses now, and was found not to lack from its start. */
  #tolerated = new Set<string>();
  #toleratedBefore: ReadonlySet<string> = new Set();
  #nextLookAt = Number.NEGATIVE_INFINITY;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Another epoch serves. What the one before had done without is not held against it. */
  begin(): void {
    this.#toleratedBefore = this.#tolerated;
    this.#tolerated = new Set();
    this.#lacking = undefined;
    this.#nextLookAt = Number.NEGATIVE_INFINITY;
  }

  /** What the epoch lacks, and why, from its last answer; undefined: nothing is known against it. */
  get problem(): string | undefined {
    const lacking = [...(this.#lacking ?? [])].map(([name, why]) => `${name}: ${why}`);
    if (lacking.length === 0) return undefined;
    const more = lacking.length > 3 ? `, and ${lacking.length - 3} more` : '';
    return `${lacking.slice(0, 3).join('; ')}${more}`;
  }

  /** @returns {@link problem}, after a look where it is time for one */
  async look(admin: Pick<AdminClient, 'get'>): Promise<string | undefined> {
    const before = this.#lacking;
    if (before !== undefined && before.size === 0 && this.#now() < this.#nextLookAt) return undefined;
    const refused = await askRefusedListeners(admin);
    // Another epoch may have begun to serve meanwhile.
    if (refused === undefined || this.#lacking !== before) return this.problem;
    this.#nextLookAt = this.#now() + lookAgainMs;
    const atStart = refused.filter(({ name }) => before?.has(name) ?? !this.#toleratedBefore.has(name));
    this.#lacking = new Map(atStart.map(({ name, why }) => [name, why]));
    this.#tolerated = new Set(refused.flatMap(({ name }) => (this.#lacking?.has(name) ? [] : [name])));
    return this.problem;
  }
}
