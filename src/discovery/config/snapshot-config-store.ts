import { type Config, type ConfigKey, configKeyText } from '../../model/config/config.ts';
import { configEvent } from '../../model/config/config-changes.ts';
import { ConfigEvents, inOrder } from './config-events.ts';
import type { ConfigSnapshot } from './config-snapshot.ts';
import {
  allSchemas,
  type ConfigHandler,
  type ConfigSchema,
  type ConfigStoreController,
  refusingWrites,
  selected,
} from './config-store.ts';

/** What is read from files (or made of what is read) as a store: to be read and never to be written (spec/discovery.md §4.3). */
export class SnapshotConfigStore implements ConfigStoreController {
  readonly create: ConfigStoreController['create'];
  readonly update: ConfigStoreController['update'];
  readonly updateStatus: ConfigStoreController['updateStatus'];
  readonly delete: ConfigStoreController['delete'];
  readonly #events: ConfigEvents;
  #snapshot: ConfigSnapshot;

  /** @param handlerFailed is told what an event handler threw */
  constructor(snapshot: ConfigSnapshot, handlerFailed?: (error: unknown) => void) {
    this.#snapshot = snapshot;
    this.#events = new ConfigEvents(handlerFailed);
    const writes = refusingWrites('edit the file in the configuration directory');
    this.create = writes.create;
    this.update = writes.update;
    this.updateStatus = writes.updateStatus;
    this.delete = writes.delete;
  }

  schemas(): readonly ConfigSchema[] {
    return allSchemas;
  }

  get(key: ConfigKey): Config | undefined {
    return this.#snapshot.byKey.get(configKeyText(key));
  }

  list(kind: string, namespace = ''): readonly Config[] {
    const known: readonly Config[] | undefined = (this.#snapshot.set as Partial<Record<string, readonly Config[]>>)[
      kind
    ];
    if (known === undefined) return selected(this.#snapshot.byKey.values(), kind, namespace);
    return namespace === '' ? known : known.filter((config) => config.namespace === namespace);
  }

  /**
   * The files were read again: this is what they say now. Who listens is told.
   *
   * @param touched keys of all objects that may be others; all, when it is not said
   */
  advance(snapshot: ConfigSnapshot, touched?: Iterable<string>): void {
    const before = this.#snapshot;
    this.#snapshot = snapshot;
    const keys = new Set(touched ?? [...before.byKey.keys(), ...snapshot.byKey.keys()]);
    const events = [...keys].flatMap((key) => configEvent(before.byKey.get(key), snapshot.byKey.get(key)) ?? []);
    this.#events.post(inOrder(events));
  }

  registerEventHandler(kind: string, handler: ConfigHandler): void {
    this.#events.register(kind, handler);
  }

  run(stop: AbortSignal): Promise<void> {
    return this.#events.run(this.#snapshot.byKey.values(), stop);
  }

  hasSynced(): boolean {
    return this.#events.isRunning;
  }
}
