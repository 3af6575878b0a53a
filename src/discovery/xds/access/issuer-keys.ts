/** The keys of an issuer of tokens, as jose asks for them. */
import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { messageOf } from '../../../runtime/errors.ts';
import { BlockedAddresses } from '../../../runtime/fences/blocked-addresses.ts';
import { type Fetch, guardedFetch } from '../../../runtime/fences/guarded-fetch.ts';
import { fetchKeySet, type KeyAddress } from '../../jwks/fetch-key-set.ts';

export interface KeysOf {
  /** @throws KeysUnavailable when there are none and the issuer does not answer */
  get(): Promise<JWTVerifyGetKey>;
  /** A token names a key that is not there. @returns whether the keys may be others now */
  refresh(): Promise<boolean>;
}

/** Nobody can be told from anybody now; another time it may be otherwise. */
export class KeysUnavailable extends Error {
  override readonly name = 'KeysUnavailable';
}

/** Keys that a person gave. @throws TypeError for a text that is no key set */
export function givenKeys(keySet: JSONWebKeySet): KeysOf {
  const keys = createLocalJWKSet(keySet);
  return { get: async () => keys, refresh: async () => false };
}

export interface FetchedKeysOptions {
  readonly address: KeyAddress;
  readonly fetch?: Fetch;
  /** Milliseconds of a clock that nobody sets. */
  readonly now?: () => number;
}

const timeoutMs = 5_000;
/** Keys that are older are asked for again, and used all the same while the issuer does not answer. */
const freshMs = 10 * 60_000;
/** Made-up names of keys do not make us ask more often (spec/identity.md §7, jose). */
const restMs = 30_000;

/** Keys that the issuer is asked for, at most each half minute; what it said last counts until it says something else. */
export class FetchedKeys implements KeysOf {
  readonly #options: FetchedKeysOptions;
  #keys: JWTVerifyGetKey | undefined;
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | undefined;
  #failure = '';

  constructor(options: FetchedKeysOptions) {
    this.#options = options;
  }

  async get(): Promise<JWTVerifyGetKey> {
    const isOld = this.#now() - this.#fetchedAt > freshMs;
    if (this.#keys === undefined) await this.#ask();
    // Nobody waits for better ones than those that are there.
    else if (isOld) void this.#ask();
    if (this.#keys === undefined) throw new KeysUnavailable(`no keys of the token issuer: ${this.#failure}`);
    return this.#keys;
  }

  async refresh(): Promise<boolean> {
    const before = this.#keys;
    await this.#ask();
    return this.#keys !== before;
  }

  #ask(): Promise<void> {
    if (this.#asking === undefined && this.#now() - this.#askedAt >= restMs) {
      this.#askedAt = this.#now();
      this.#asking = this.#fetch().finally(() => {
        this.#asking = undefined;
      });
    }
    return this.#asking ?? Promise.resolve();
  }

  async #fetch(): Promise<void> {
    const { address } = this.#options;
    // The operator named this host. What it redirects to, or names as the place of its keys, nobody did.
    const trustedHost = new URL(address.url).hostname;
    const { fetch = guardedFetch(new BlockedAddresses(), { trustedHost }) } = this.#options;
    const signal = AbortSignal.timeout(timeoutMs);
    try {
      const text = await fetchKeySet(address, { timeoutMs, signal, fetch });
      this.#keys = createLocalJWKSet(JSON.parse(text) as JSONWebKeySet);
      this.#fetchedAt = this.#now();
    } catch (error) {
      this.#failure = messageOf(error);
    }
  }

  #now(): number {
    return (this.#options.now ?? (() => performance.now()))();
  }
}
