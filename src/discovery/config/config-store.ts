/** Stores of configuration objects (spec/discovery.md §4.1). */
import { byAge, type Config, type ConfigKey, configKeyOf, configKeyText } from '../../model/config.ts';
import type { ConfigSnapshot } from './config-snapshot.ts';

export type ConfigStoreFault =
  | 'already exists'
  | 'not found'
  | 'conflicting resource version'
  | 'invalid'
  | 'unsupported';

/** A write that was refused. Nothing was changed. */
export class ConfigStoreError extends Error {
  readonly fault: ConfigStoreFault;

  constructor(fault: ConfigStoreFault, key: ConfigKey, detail = '') {
    super(`${configKeyText(key)}: ${fault}${detail === '' ? '' : `: ${detail}`}`);
    this.name = 'ConfigStoreError';
    this.fault = fault;
  }
}

export interface ConfigReader {
  get(key: ConfigKey): Config | undefined;
  /** Oldest first, then by name, then by namespace. No namespace: those of all. */
  list(kind: string, namespace?: string): readonly Config[];
}

/** What a writer may leave open. */
export type ConfigDraft = Omit<Config, 'resourceVersion' | 'creationTimestamp'> &
  Partial<Pick<Config, 'resourceVersion' | 'creationTimestamp'>>;

/** Writes answer the new resource version, and throw {@link ConfigStoreError}. */
export interface ConfigStore extends ConfigReader {
  create(config: ConfigDraft): string;
  /** An empty or absent resource version overwrites whatever is there. */
  update(config: ConfigDraft): string;
  /** As `update`, of the status alone. */
  updateStatus(key: ConfigKey, status: unknown, resourceVersion?: string): string;
  delete(key: ConfigKey, resourceVersion?: string): void;
}

export interface MemoryStoreOptions {
  /** Milliseconds since the Unix epoch. */
  readonly now?: () => number;
  /** What is wrong with an object; nothing when it is good. */
  readonly validate?: (config: ConfigDraft) => readonly string[];
}

/** Keeps objects in memory. */
export class MemoryConfigStore implements ConfigStore {
  readonly #configs = new Map<string, Config>();
  readonly #now: () => number;
  readonly #validate: (config: ConfigDraft) => readonly string[];
  #revision = 0;

  constructor({ now = Date.now, validate = () => [] }: MemoryStoreOptions = {}) {
    this.#now = now;
    this.#validate = validate;
  }

  get(key: ConfigKey): Config | undefined {
    return this.#configs.get(configKeyText(key));
  }

  list(kind: string, namespace?: string): readonly Config[] {
    return select(this.#configs.values(), kind, namespace);
  }

  create(config: ConfigDraft): string {
    const key = configKeyOf(config as Config);
    if (this.get(key) !== undefined) throw new ConfigStoreError('already exists', key);
    this.#refuseInvalid(key, config);
    return this.#put({
      ...config,
      creationTimestamp: config.creationTimestamp ?? this.#now(),
      resourceVersion: config.resourceVersion || this.#nextRevision(),
    });
  }

  update(config: ConfigDraft): string {
    const key = configKeyOf(config as Config);
    const old = this.#existing(key, config.resourceVersion);
    this.#refuseInvalid(key, config);
    const creationTimestamp = config.creationTimestamp ?? old.creationTimestamp;
    return this.#put({ ...config, creationTimestamp, resourceVersion: this.#nextRevision() });
  }

  updateStatus(key: ConfigKey, status: unknown, resourceVersion?: string): string {
    return this.#put({ ...this.#existing(key, resourceVersion), status, resourceVersion: this.#nextRevision() });
  }

  delete(key: ConfigKey, resourceVersion?: string): void {
    this.#existing(key, resourceVersion);
    this.#configs.delete(configKeyText(key));
  }

  #existing(key: ConfigKey, resourceVersion = ''): Config {
    const old = this.get(key);
    if (old === undefined) throw new ConfigStoreError('not found', key);
    if (resourceVersion !== '' && resourceVersion !== old.resourceVersion) {
      const detail = `${resourceVersion} was given, ${old.resourceVersion} is stored`;
      throw new ConfigStoreError('conflicting resource version', key, detail);
    }
    return old;
  }

  #refuseInvalid(key: ConfigKey, config: ConfigDraft): void {
    const mistakes = this.#validate(config);
    if (mistakes.length > 0) throw new ConfigStoreError('invalid', key, mistakes.join('; '));
  }

  #nextRevision(): string {
    return String(++this.#revision);
  }

  #put(config: Config): string {
    this.#configs.set(configKeyText(configKeyOf(config)), Object.freeze(config));
    return config.resourceVersion;
  }
}

/** A directory's objects, to be read and never to be written. */
export function directoryStore(snapshot: () => ConfigSnapshot): ConfigStore {
  const refuse = (key: ConfigKey): never => {
    throw new ConfigStoreError('unsupported', key, 'edit the file in the configuration directory');
  };
  return {
    get: (key) => snapshot().byKey.get(configKeyText(key)),
    list: (kind, namespace) => select(snapshot().byKey.values(), kind, namespace),
    create: (config) => refuse(configKeyOf(config as Config)),
    update: (config) => refuse(configKeyOf(config as Config)),
    updateStatus: refuse,
    delete: refuse,
  };
}

/** Several stores as one: the first that holds a key wins. Writes go to `writer`, if there is one. */
export function aggregateStore(stores: readonly ConfigReader[], writer?: ConfigStore): ConfigStore {
  const refuse = (key: ConfigKey): never => {
    throw new ConfigStoreError('unsupported', key, 'no writable store');
  };
  return {
    get: (key) => stores.map((store) => store.get(key)).find((config) => config !== undefined),
    list: (kind, namespace) => {
      const first = new Map<string, Config>();
      for (const config of stores.flatMap((store) => store.list(kind, namespace))) {
        const key = configKeyText(configKeyOf(config));
        if (!first.has(key)) first.set(key, config);
      }
      return [...first.values()].sort(byAge);
    },
    create: (config) => writer?.create(config) ?? refuse(configKeyOf(config as Config)),
    update: (config) => writer?.update(config) ?? refuse(configKeyOf(config as Config)),
    updateStatus: (key, status, version) => writer?.updateStatus(key, status, version) ?? refuse(key),
    delete: (key, version) => (writer === undefined ? refuse(key) : writer.delete(key, version)),
  };
}

function select(configs: Iterable<Config>, kind: string, namespace = ''): readonly Config[] {
  return [...configs]
    .filter((config) => config.kind === kind && (namespace === '' || config.namespace === namespace))
    .sort(byAge);
}
