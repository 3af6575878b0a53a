/**
 * What an address may use up of the server without anything coming of it, over all of its connections.
 *
 * A connection and a stream cost their address a little until a node has said by them who it is; then they are given back.
 * What is not given back comes back with time. An address that has used up more than that is held off, at first for a
 * second, for twice as long when it goes on: see Strangers for what this means to it. Clients behind one address (NAT, the
 * pods of a node through one gateway) share its account; that nodes live there is remembered elsewhere (see KnownNodes).
 */
import { setNewest } from './drop-oldest.ts';

export interface AddressPaceLimits {
  /** Used up at once, and again each second. A stream costs 1. Default 2000 and 200. */
  readonly most: number;
  readonly perSecond: number;
  /** How long an address is held off the first time, and at the most. Default 1 s and 60 s. */
  readonly firstHoldMs: number;
  readonly longestHoldMs: number;
}

export const addressPaceLimits: AddressPaceLimits = {
  most: 2_000,
  perSecond: 200,
  firstHoldMs: 1_000,
  longestHoldMs: 60_000,
};

/** Addresses that are kept in mind because they have used something up. */
const mostAddresses = 20_000;
/** An address that has kept quiet for so many times its last hold is held off as if for the first time. */
const forgivenAfter = 10;

interface Account {
  used: number;
  /** When `used` was reckoned last. */
  at: number;
  /** Held off until then. */
  until: number;
  /** How long it was held off last; 0: never. */
  holdMs: number;
}

export class AddressPace {
  readonly #limits: AddressPaceLimits;
  readonly #now: () => number;
  readonly #accounts = new Map<string, Account>();

  /** @param now monotonic milliseconds */
  constructor(limits: AddressPaceLimits, now: () => number) {
    this.#limits = limits;
    this.#now = now;
  }

  /** @returns for how long the address is held off because of this; 0 when it is not, or was before. */
  spend(group: string, units: number): number {
    const account = this.#account(group);
    account.used += units;
    const now = this.#now();
    if (account.used <= this.#limits.most || now < account.until) return 0;
    const { firstHoldMs, longestHoldMs } = this.#limits;
    const isForgiven = now >= account.until + account.holdMs * forgivenAfter;
    account.holdMs = isForgiven ? firstHoldMs : Math.min(account.holdMs * 2, longestHoldMs);
    account.until = now + account.holdMs;
    // Half of it is there again when it may come back: else the first stream would be one too many.
    account.used = this.#limits.most / 2;
    return account.holdMs;
  }

  /** Something came of it after all. */
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
    setNewest(this.#accounts, group, account, mostAddresses);
    return account;
  }
}
