/** Key sets of issuers that RequestAuthentications name by an address: fetched, kept, and put into the objects. */

import { createHash } from 'node:crypto';
import type { KeySource } from '../../../machines/discovery/jwks/jwks.machine.ts';
import type { IssuerAnswer } from '../../../machines/discovery/jwks/key-set.machine.ts';
import { sameItems } from '../../model/collections/same-items.ts';
import { type Config, configKeyOf, configKeyText } from '../../model/config/config.ts';
import type { ConfigSet } from '../../model/config/config-set.ts';
import type { JwtRule, RequestAuthentication } from '../../model/kinds/policies/request-authentication.ts';
import { messageOf } from '../../runtime/errors.ts';
import { BlockedAddresses } from '../../runtime/fences/blocked-addresses.ts';
import { type Fetch, guardedFetch } from '../../runtime/fences/guarded-fetch.ts';
import { fetchKeySet, type KeyAddress } from './fetch-key-set.ts';

const defaultTimeoutMs = 5_000;

/** An object with what it got, as long as that is the same. */
interface Resolved {
  readonly keys: readonly (string | undefined)[];
  readonly config: Config<RequestAuthentication>;
}

export class KeySets {
  /** How often issuers were asked, and what came of it. */
  readonly counts = { success: 0, failure: 0 };
  readonly #fetch: Fetch;
  readonly #addresses = new Map<string, KeyAddress>();
  readonly #keys = new Map<string, string>();
  readonly #resolved = new WeakMap<Config, Resolved>();

  constructor(fetch: Fetch = guardedFetch(new BlockedAddresses())) {
    this.#fetch = fetch;
  }

  /** What these objects ask for, each once. What none of them asks for is forgotten. */
  sourcesOf(configs: readonly Config<RequestAuthentication>[]): KeySource[] {
    const sources = new Map<string, KeySource>();
    this.#addresses.clear();
    for (const config of configs) {
      const user = configKeyText(configKeyOf(config));
      for (const rule of config.spec.jwtRules) {
        const address = addressOf(rule);
        if (address === undefined) continue;
        const source = nameOf(address);
        const { timeoutMs = 0, users = [] } = sources.get(source) ?? {};
        this.#addresses.set(source, address);
        sources.set(source, {
          source,
          // The longest timeout among its users counts.
          timeoutMs: Math.max(timeoutMs, rule.timeoutMs ?? defaultTimeoutMs),
          users: [...new Set([...users, user])],
        });
      }
    }
    for (const source of this.#keys.keys()) if (!sources.has(source)) this.#keys.delete(source);
    return [...sources.values()];
  }

  /**
   * Asks an issuer, and keeps what it answers.
   *
   * @throws Error with what to tell people
   */
  async fetch(source: string, timeoutMs: number, signal: AbortSignal): Promise<{ version: string }> {
    const address = this.#addresses.get(source);
    if (address === undefined) throw new Error('no object asks for it any more');
    try {
      const keys = await fetchKeySet(address, { timeoutMs, signal, fetch: this.#fetch });
      // Stopped meanwhile: nobody asks for it any more.
      if (!signal.aborted) this.#keys.set(source, keys);
      this.counts.success++;
      return { version: hashOf(keys) };
    } catch (error) {
      if (!signal.aborted) this.counts.failure++;
      throw error;
    }
  }

  /** Does what {@link KeySets.fetch} does; what that throws is an answer here. */
  async ask(source: string, timeoutMs: number, signal: AbortSignal): Promise<IssuerAnswer> {
    try {
      return { outcome: 'fetched', ...(await this.fetch(source, timeoutMs, signal)) };
    } catch (error) {
      return { outcome: 'failed', reason: messageOf(error) };
    }
  }

  /** The objects with the keys that were fetched for them. An object is the same one while its keys are. */
  resolve(set: ConfigSet): ConfigSet {
    const configs = set.RequestAuthentication;
    if (configs.length === 0) return set;
    return { ...set, RequestAuthentication: configs.map((config) => this.#withKeys(config)) };
  }

  #withKeys(config: Config<RequestAuthentication>): Config<RequestAuthentication> {
    const keys = config.spec.jwtRules.map((rule) => {
      const address = addressOf(rule);
      return address && this.#keys.get(nameOf(address));
    });
    if (keys.every((one) => one === undefined)) return config;
    const known = this.#resolved.get(config);
    if (known !== undefined && sameItems(known.keys, keys)) return known.config;
    const jwtRules = config.spec.jwtRules.map((rule, index): JwtRule => {
      const jwks = keys[index];
      return jwks === undefined ? rule : { ...rule, jwks };
    });
    const resolved = { ...config, spec: { ...config.spec, jwtRules } };
    this.#resolved.set(config, { keys, config: resolved });
    return resolved;
  }
}

/** Undefined for a rule that has its keys in it. */
function addressOf({ jwks, jwksUri, issuer }: JwtRule): KeyAddress | undefined {
  if (jwks !== undefined) return undefined;
  return jwksUri !== undefined ? { kind: 'keys', url: jwksUri } : { kind: 'issuer', url: issuer };
}

/** What stands for an address in events and logs: without what may be secret in it, and yet one for each. */
function nameOf({ kind, url }: KeyAddress): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  const role = kind === 'issuer' ? 'issuer ' : '';
  if (parsed === undefined) return `${role}${url}`;
  const isPlain = parsed.username === '' && parsed.password === '' && parsed.search === '';
  return isPlain ? `${role}${url}` : `${role}${parsed.origin}${parsed.pathname} (${hashOf(url).slice(0, 8)})`;
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
