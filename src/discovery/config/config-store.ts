/** Stores of configuration objects (spec/discovery.md §4.1). Any store is held to store-contract.ts. */
import { byAge, type Config, type ConfigKey, configKeyOf, configKeyText } from '../../model/config/config.ts';
import type { ConfigEvent } from '../../model/config/config-changes.ts';
import { kinds } from '../../model/kinds/index.ts';
import type { Kind } from '../../model/kinds/kind.ts';

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

/** What a kind's objects are called. */
export type ConfigSchema = Pick<Kind<string, unknown>, 'kind' | 'group' | 'versions' | 'plural' | 'scope'>;

/** Every kind that can be read. */
export const allSchemas: readonly ConfigSchema[] = Object.values(kinds);

/** Objects that it answers are never changed, by it or by anybody else; of a kind that it does not know it has none. */
export interface ConfigReader {
  schemas(): readonly ConfigSchema[];
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

export type ConfigHandler = (event: ConfigEvent) => void;

/**
 * A store that tells what happens in it. When it runs, what it has is told as added; from then on each change. The store
 * is at least as new as the event that a handler gets.
 */
export interface ConfigStoreController extends ConfigStore {
  /** Handlers of a kind are called one at a time, in the order in which they were registered. Throws once it runs. */
  registerEventHandler(kind: string, handler: ConfigHandler): void;
  /** Delivers events until the signal says stop. */
  run(stop: AbortSignal): Promise<void>;
  /** Everything that was there at the start was delivered. */
  hasSynced(): boolean;
}

/** The objects of a kind as {@link ConfigReader.list} answers them. */
export function selected(configs: Iterable<Config>, kind: string, namespace = ''): readonly Config[] {
  return [...configs]
    .filter((config) => config.kind === kind && (namespace === '' || config.namespace === namespace))
    .sort(byAge);
}

/** The writing half of a store that cannot be written to. */
export function refusingWrites(remedy: string): Pick<ConfigStore, 'create' | 'update' | 'updateStatus' | 'delete'> {
  const refuse = (key: ConfigKey): never => {
    throw new ConfigStoreError('unsupported', key, remedy);
  };
  return {
    create: (config) => refuse(configKeyOf(config as Config)),
    update: (config) => refuse(configKeyOf(config as Config)),
    updateStatus: refuse,
    delete: refuse,
  };
}
