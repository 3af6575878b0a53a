/** Delivery of a store's events (spec/discovery.md §4.1). */
import { type Config, configKeyOf } from '../../model/config/config.ts';
import { type ConfigEvent, subjectOf } from '../../model/config/config-changes.ts';
import { type ConfigHandler, ConfigStoreError } from './config-store.ts';

/** One event at a time, each to the handlers of its kind in the order of registration; what a handler causes comes after. */
export class ConfigEvents {
  readonly #handlers = new Map<string, ConfigHandler[]>();
  readonly #failed: (error: unknown) => void;
  readonly #due: ConfigEvent[] = [];
  #state: 'not started' | 'running' | 'stopped' = 'not started';
  #isDelivering = false;

  /** @param failed is told what a handler threw; the others are called all the same */
  constructor(failed: (error: unknown) => void = () => {}) {
    this.#failed = failed;
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  register(kind: string, handler: ConfigHandler): void {
    if (this.#state !== 'not started') {
      const key = { kind, namespace: '', name: '' };
      throw new ConfigStoreError('unsupported', key, 'handlers are registered before the store runs');
    }
    this.#handlers.set(kind, [...(this.#handlers.get(kind) ?? []), handler]);
  }

  /** @param present what is there is told first */
  async run(present: Iterable<Config>, stop: AbortSignal): Promise<void> {
    if (this.#state !== 'not started' || stop.aborted) return;
    this.#state = 'running';
    const stopped = new Promise<void>((resolve) => stop.addEventListener('abort', () => resolve(), { once: true }));
    this.post([...present].map((current) => ({ type: 'add', current })));
    await stopped;
    this.#state = 'stopped';
    this.#due.length = 0;
  }

  /** To be called when the store is as new as the events. Before it runs nobody is told; what is there then is told at once. */
  post(events: readonly ConfigEvent[]): void {
    if (this.#state !== 'running') return;
    this.#due.push(...events);
    if (this.#isDelivering) return;
    this.#isDelivering = true;
    for (let event = this.#due.shift(); event !== undefined; event = this.#due.shift()) this.#deliver(event);
    this.#isDelivering = false;
  }

  #deliver(event: ConfigEvent): void {
    for (const handler of this.#handlers.get(subjectOf(event).kind) ?? []) {
      try {
        handler(event);
      } catch (error) {
        this.#failed(error);
      }
    }
  }
}

/** Deletions first, then what is new: a name that moves is free before it is taken. */
export function inOrder(events: readonly ConfigEvent[]): readonly ConfigEvent[] {
  const rank = { delete: 0, add: 1, update: 2 } as const;
  const text = (event: ConfigEvent): string => {
    const { namespace, kind, name } = configKeyOf(event.type === 'delete' ? event.previous : event.current);
    return `${namespace}/${kind}/${name}`;
  };
  return events.toSorted((a, b) => rank[a.type] - rank[b.type] || (text(a) < text(b) ? -1 : 1));
}
