/**
 * Budget of an address for connections and streams without an identified node.
 *
 * A connection or stream uses some of the budget, and returns it when a node is identified. The budget also recovers
 * with time. An address beyond its budget is throttled for a second, and twice as long each further time; see
 * UnidentifiedConnections for the consequences. Clients behind one address (NAT, the pods of a node through one
 * gateway) share its budget. KnownNodes remembers addresses with nodes.
 */
import { setNewest } from './drop-oldest.ts';

export interface AddressPaceLimits {
  /** Burst, and recovery per second. A stream costs 1. Default 2000 and 200. */
  readonly burst: number;
  readonly perSecond: number;
  /** First and maximum duration of throttling. Default 1 s and 60 s. */
  readonly firstHoldMs: number;
  readonly maxHoldMs: number;
}

export const addressPaceLimits: AddressPaceLimits = {
  burst: 2_000,
  perSecond: 200,
  firstHoldMs: 1_000,
  maxHoldMs: 60_000,
};

/** Addresses that have used some of their budget. */
const maxAddresses = 20_000;
/** After this multiple of its last duration, throttling starts again with the first duration. */
const resetFactor = 10;

interface Account {
  used: number;
  /** When `used` was last computed. */
  at: number;
  /** End of throttling. */
  until: number;
  /** Last duration of throttling; 0: never throttled. */
  holdMs: number;
}

export class AddressPace {
  readonly #limits: AddressPaceLimits;
  readonly #now: () => number;
  readonly #accounts = new Map<string, Account>();

  /** @param now monotonic clock in milliseconds */
  constructor(limits: AddressPaceLimits, now: () => number) {
    this.#limits = limits;
    this.#now = now;
  }

  /** @returns the duration of newly started throttling; otherwise 0 */
  spend(group: string, units: number): number {
    const account = this.#account(group);
    account.used += units;
    const now = this.#now();
    if (account.used <= this.#limits.burst || now < account.until) return 0;
    const { firstHoldMs, maxHoldMs } = this.#limits;
    const isReset = now >= account.until + account.holdMs * resetFactor;
    account.holdMs = isReset ? firstHoldMs : Math.min(account.holdMs * 2, maxHoldMs);
    account.until = now + account.holdMs;
    // Half of the budget is available afterwards, so that the first stream does not exceed it again.
    account.used = this.#limits.burst / 2;
    return account.holdMs;
  }

  /** A node was identified after all. */
  giveBack(group: string, units: number): void {
    const account = this.#accounts.get(group);
    if (account !== undefined) account.used = Math.max(0, account.used - units);
  }

  isHeldOff(group: string): boolean {
    return this.#now() < (this.#accounts.get(group)?.until ?? 0);
  }

  #account(group: string): Account {
    const now = this.#now();
    const account = this.#accounts.get(group) ?? { used: 0, at: now, until: 0, holdMs: 0 };
    account.used = Math.max(0, account.used - ((now - account.at) * this.#limits.perSecond) / 1_000);
    account.at = now;
    setNewest(this.#accounts, group, account, maxAddresses);
    return account;
  }
}
