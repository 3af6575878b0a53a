import { type Config, type ConfigKey, configKeyOf, configKeyText } from '../../model/config/config.ts';
import { type ConfigEvent, configEvent } from '../../model/config/config-changes.ts';
import { ConfigEvents } from './config-events.ts';
import {
  allSchemas,
  type ConfigDraft,
  type ConfigHandler,
  type ConfigSchema,
  type ConfigStoreController,
  ConfigStoreError,
  selected,
} from './config-store.ts';

export interface MemoryStoreOptions {
  /** Milliseconds since the Unix epoch. */
  readonly now?: () => number;
  /** What is wrong with an object; nothing when it is good. */
  readonly validate?: (config: ConfigDraft) => readonly string[];
  /** Is told what an event handler threw. */
  readonly handlerFailed?: (error: unknown) => void;
}

/** Keeps objects in memory (spec/discovery.md §4.1). */
export class MemoryConfigStore implements ConfigStoreController {
  readonly #configs = new Map<string, Config>();
  readonly #events: ConfigEvents;
  readonly #now: () => number;
  readonly #validate: (config: ConfigDraft) => readonly string[];
  #revision = 0;

  constructor({ now = Date.now, validate = () => [], handlerFailed }: MemoryStoreOptions = {}) {
    this.#now = now;
    this.#validate = validate;
    this.#events = new ConfigEvents(handlerFailed);
  }

  schemas(): readonly ConfigSchema[] {
    return allSchemas;
  }

  get(key: ConfigKey): Config | undefined {
    return this.#configs.get(configKeyText(key));
  }

  list(kind: string, namespace?: string): readonly Config[] {
    return selected(this.#configs.values(), kind, namespace);
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
    const old = this.#existing(key, resourceVersion);
    this.#configs.delete(configKeyText(key));
    this.#tell(configEvent(old, undefined));
  }

  registerEventHandler(kind: string, handler: ConfigHandler): void {
    this.#events.register(kind, handler);
  }

  run(stop: AbortSignal): Promise<void> {
    return this.#events.run(this.#configs.values(), stop);
  }

  hasSynced(): boolean {
    return this.#events.isRunning;
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
    const text = configKeyText(configKeyOf(config));
    const old = this.#configs.get(text);
    // The writer may go on with what it gave: what is kept is a copy.
    this.#configs.set(text, frozen(structuredClone(config)));
    this.#tell(configEvent(old, this.#configs.get(text)));
    return config.resourceVersion;
  }

  #tell(event: ConfigEvent | undefined): void {
    if (event !== undefined) this.#events.post([event]);
  }
}

/** Frozen through and through. */
function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const element of Object.values(value)) frozen(element);
  return Object.freeze(value);
}
