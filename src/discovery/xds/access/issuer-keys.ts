import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { messageOf } from '../../../runtime/errors.ts';
import { BlockedAddresses } from '../../../runtime/fences/blocked-addresses.ts';
import { type Fetch, guardedFetch } from '../../../runtime/fences/guarded-fetch.ts';
import { fetchKeySet, type KeyAddress } from '../../jwks/fetch-key-set.ts';

export interface IssuerKeys {
  /** @throws KeysUnavailable without keys, if the issuer does not respond */
  get(): Promise<JWTVerifyGetKey>;
  /**
   * Called for a token with an unknown key ID.
   *
   * @returns whether the keys may have changed
   */
  refresh(): Promise<boolean>;
}

export class KeysUnavailableError extends Error {
  override readonly name = 'KeysUnavailable';
}

/** @throws TypeError if this is not a key set */
export function localKeys(keySet: JSONWebKeySet): IssuerKeys {
  const keys = createLocalJWKSet(keySet);
  return { get: async () => keys, refresh: async () => false };
}

export interface FetchedKeysOptions {
  readonly address: KeyAddress;
  readonly fetch?: Fetch;
  /** Monotonic clock in milliseconds. */
  readonly now?: () => number;
}

const timeoutMs = 5_000;
/** Older keys are fetched again, but used until the issuer responds. */
const maxKeyAgeMs = 10 * 60_000;
/** Minimum interval between fetches, also for unknown key IDs. */
const minFetchIntervalMs = 30_000;

export class FetchedKeys implements IssuerKeys {
  readonly #options: FetchedKeysOptions;
  #keys: JWTVerifyGetKey | undefined;
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #requestedAt = Number.NEGATIVE_INFINITY;
  #pendingFetch: Promise<void> | undefined;
  #failure = '';

  constructor(options: FetchedKeysOptions) {
    this.#options = options;
  }

  async get(): Promise<JWTVerifyGetKey> {
    // Old keys are still usable, so new ones are fetched in the background.
    const isRefreshDue = this.#readClock() - this.#fetchedAt > maxKeyAgeMs;
    if (this.#keys === undefined) await this.#fetchKeysIfDue();
    else if (isRefreshDue) void this.#fetchKeysIfDue();
    if (this.#keys === undefined) throw new KeysUnavailableError(`no keys of the token issuer: ${this.#failure}`);
    return this.#keys;
  }

  async refresh(): Promise<boolean> {
    const previous = this.#keys;
    await this.#fetchKeysIfDue();
    return this.#keys !== previous;
  }

  #fetchKeysIfDue(): Promise<void> {
    if (this.#pendingFetch === undefined && this.#readClock() - this.#requestedAt >= minFetchIntervalMs) {
      this.#requestedAt = this.#readClock();
      this.#pendingFetch = this.#fetch().finally(() => {
        this.#pendingFetch = undefined;
      });
    }
    return this.#pendingFetch ?? Promise.resolve();
  }

  async #fetch(): Promise<void> {
    const { address } = this.#options;
    // The operator configured this host, unlike the hosts of redirects or of the `jwks_uri`.
    const trustedHost = new URL(address.url).hostname;
    const { fetch = guardedFetch(new BlockedAddresses(), { trustedHost }) } = this.#options;
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      const text = await fetchKeySet(address, { timeoutMs, signal, fetch });
      this.#keys = createLocalJWKSet(JSON.parse(text) as JSONWebKeySet);
      this.#fetchedAt = this.#readClock();
    } catch (error) {
      this.#failure = messageOf(error);
    }
  }

  #readClock(): number {
    return (this.#options.now ?? (() => performance.now()))();
  }
}
