/**
 * Budget of an address for connections and streams without an identified node. Each connection or stream is charged, and refunded when a node is
 * identified. An address that exceeds its budget is throttled for a second, then for twice as long each time. Clients behind one address (NAT, the
 * pods of a node behind a gateway) share its budget.
 */
import { setAsNewest } from './drop-oldest.ts';

export interface AddressPaceLimits {
  /** Maximum budget, and its recovery per second. A stream costs 1. */
  readonly burst: number;
  readonly perSecond: number;
  readonly firstHoldMs: number;
  readonly maxHoldMs: number;
}

export const addressPaceLimits: AddressPaceLimits = {
  burst: 2_000,
  perSecond: 200,
  firstHoldMs: 1_000,
  maxHoldMs: 60_000,
};

const maxAddresses = 20_000;
/** If an address was not throttled for this multiple of its last duration, the next duration is the minimum again. */
const resetFactor = 10;

interface Account {
  usedUnits: number;
  /** Time of the last update of `usedUnits`. */
  at: number;
  until: number;
  /** 0 if the address was never throttled. */
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

  /** @returns the duration if throttling starts now, otherwise 0 */
  chargeUnits(group: string, units: number): number {
    const account = this.#account(group);
    account.usedUnits += units;
    const now = this.#now();
    if (account.usedUnits <= this.#limits.burst || now < account.until) return 0;
    const { firstHoldMs, maxHoldMs } = this.#limits;
    const isHoldReset = now >= account.until + account.holdMs * resetFactor;
    account.holdMs = isHoldReset ? firstHoldMs : Math.min(account.holdMs * 2, maxHoldMs);
    account.until = now + account.holdMs;
    // If the budget were not restored, the first stream after throttling would exceed it again.
    account.usedUnits = this.#limits.burst / 2;
    return account.holdMs;
  }

  /** Called when a node is identified. */
  refund(group: string, units: number): void {
    const account = this.#accounts.get(group);
    if (account !== undefined) account.usedUnits = Math.max(0, account.usedUnits - units);
  }

  isThrottled(group: string): boolean {
    return this.#now() < (this.#accounts.get(group)?.until ?? 0);
  }

  #account(group: string): Account {
    const now = this.#now();
    const account = this.#accounts.get(group) ?? { usedUnits: 0, at: now, until: 0, holdMs: 0 };
    account.usedUnits = Math.max(0, account.usedUnits - ((now - account.at) * this.#limits.perSecond) / 1_000);
    account.at = now;
    setAsNewest(this.#accounts, group, account, maxAddresses);
    return account;
  }
}
