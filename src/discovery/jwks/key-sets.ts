import type { KeySource } from '../../../machines/discovery/jwks/jwks.machine.ts';
import type { IssuerResponse } from '../../../machines/discovery/jwks/key-set.machine.ts';
import type { ConfigProblem } from '../../../machines/discovery/protocol.ts';
import { sameItems } from '../../model/collections/same-items.ts';
import { type Config, configKeyText } from '../../model/config/config.ts';
import type { ConfigSet } from '../../model/config/config-set.ts';
import type { JwtRule, RequestAuthentication } from '../../model/kinds/policies/request-authentication.ts';
import { messageOf } from '../../runtime/errors.ts';
import { BlockedAddresses } from '../../runtime/fences/blocked-addresses.ts';
import { type Fetch, guardedFetch } from '../../runtime/fences/guarded-fetch.ts';
import { Turns } from '../../runtime/turns.ts';
import { fetchKeySet, type KeyAddress } from './fetch-key-set.ts';
import { hashOf, keySourceOf, selectKeySources } from './key-sources.ts';

type ReportWarning = (fields: Readonly<Record<string, string | number>>) => void;

/** An object with its keys, cached until one of them changes. */
interface Resolved {
  readonly keys: readonly (string | undefined)[];
  readonly config: Config<RequestAuthentication>;
}

/** An object with issuers beyond a limit. The object itself applies unchanged. */
export interface LimitedIssuers {
  readonly original: Config;
  readonly config: Config;
  readonly problem: ConfigProblem;
}

/** @param limitedIssuers `undefined` if all issuers of the object are within the limits again */
export type IssuerLimitListener = (key: string, limitedIssuers: LimitedIssuers | undefined) => void;

export class KeySets {
  readonly counts = { success: 0, failure: 0 };
  readonly #fetch: Fetch;
  readonly #warn: ReportWarning;
  #addresses: ReadonlyMap<string, KeyAddress> = new Map();
  #rejectedIssuers: ReadonlyMap<string, LimitedIssuers> = new Map();
  readonly #limitListeners: IssuerLimitListener[] = [];
  readonly #keys = new Map<string, string>();
  readonly #resolvedConfigs = new WeakMap<Config, Resolved>();

  constructor(fetch: Fetch = guardedFetch(new BlockedAddresses()), warn: ReportWarning = () => {}) {
    this.#fetch = fetch;
    this.#warn = warn;
  }

  /** Removes all other key sets. */
  async sourcesOf(configs: readonly Config<RequestAuthentication>[]): Promise<KeySource[]> {
    const { sources, addresses, rejectionReasons } = await new Turns().runSteps(selectKeySources(configs));
    this.#addresses = addresses;
    this.#reportRejected(rejectionReasons, configs);
    for (const source of this.#keys.keys()) if (!addresses.has(source)) this.#keys.delete(source);
    return sources;
  }

  onLimited(listener: IssuerLimitListener): void {
    this.#limitListeners.push(listener);
  }

  /** Reports only changes, because an object exceeds a limit until it is edited. */
  #reportRejected(reasons: ReadonlyMap<string, string>, configs: readonly Config[]): void {
    const previous = this.#rejectedIssuers;
    const currentLimits = new Map<string, LimitedIssuers>();
    for (const config of configs) {
      const key = configKeyText(config);
      const reason = reasons.get(key);
      if (reason === undefined) continue;
      const previousLimit = previous.get(key);
      const isUnchanged = previousLimit?.original === config && previousLimit.problem.message === reason;
      currentLimits.set(key, isUnchanged ? previousLimit : limitedIssuers(config, reason));
    }
    const [first] = [...currentLimits].filter(
      ([key, { problem }]) => previous.get(key)?.problem.message !== problem.message,
    );
    if (first !== undefined) {
      const [object, { problem }] = first;
      const fields = { object, count: currentLimits.size, reason: problem.message };
      this.#warn(fields);
    }
    for (const key of new Set([...previous.keys(), ...currentLimits.keys()])) {
      if (previous.get(key) === currentLimits.get(key)) continue;
      for (const listener of this.#limitListeners) listener(key, currentLimits.get(key));
    }
    this.#rejectedIssuers = currentLimits;
  }

  /** @throws Error with the reason */
  async fetch(source: string, timeoutMs: number, signal: AbortSignal): Promise<{ version: string }> {
    const address = this.#addresses.get(source);
    if (address === undefined) throw new Error('no object uses this issuer any longer');
    try {
      const keys = await fetchKeySet(address, { timeoutMs, signal, fetch: this.#fetch });
      // After an abort, no object uses the issuer.
      if (!signal.aborted) this.#keys.set(source, keys);
      this.counts.success++;
      return { version: hashOf(keys) };
    } catch (error) {
      if (!signal.aborted) this.counts.failure++;
      throw error;
    }
  }

  /** Like {@link KeySets.fetch}, but returns failures. */
  async fetchOutcome(source: string, timeoutMs: number, signal: AbortSignal): Promise<IssuerResponse> {
    try {
      return { outcome: 'fetched', ...(await this.fetch(source, timeoutMs, signal)) };
    } catch (error) {
      return { outcome: 'failed', reason: messageOf(error) };
    }
  }

  /** Objects with unchanged keys keep their identity. */
  resolve(set: ConfigSet): ConfigSet {
    const configs = set.RequestAuthentication;
    if (configs.length === 0) return set;
    return { ...set, RequestAuthentication: configs.map((config) => this.#withKeys(config)) };
  }

  #withKeys(config: Config<RequestAuthentication>): Config<RequestAuthentication> {
    const keys = config.spec.jwtRules.map((rule) => {
      const source = keySourceOf(rule);
      return source && this.#keys.get(source.name);
    });
    if (keys.every((keySet) => keySet === undefined)) return config;
    const resolvedConfig = this.#resolvedConfigs.get(config);
    if (resolvedConfig !== undefined && sameItems(resolvedConfig.keys, keys)) return resolvedConfig.config;
    const jwtRules = config.spec.jwtRules.map((rule, index): JwtRule => {
      const jwks = keys[index];
      return jwks === undefined ? rule : { ...rule, jwks };
    });
    const configWithKeys = { ...config, spec: { ...config.spec, jwtRules } };
    this.#resolvedConfigs.set(config, { keys, config: configWithKeys });
    return configWithKeys;
  }
}

function limitedIssuers(originalConfig: Config, message: string): LimitedIssuers {
  const { kind, namespace, name } = originalConfig;
  const problemFields = {
    severity: 'error',
    code: 'LIMIT_EXCEEDED',
    place: { source: '' },
    object: `${kind} ${namespace}/${name}`,
  } as const;
  return {
    original: originalConfig,
    config: originalConfig,
    problem: { ...problemFields, field: 'spec.jwtRules', message },
  };
}
