import type { Config } from '../../model/config/config.ts';
import type { ShardKey } from '../../model/services/endpoint-shards.ts';
import type { ProxyLookup } from '../../model/services/proxy-lookup.ts';
import type { ConfigObjectChange, RegistryDelta } from '../../model/services/registry-delta.ts';
import type { Service } from '../../model/services/service.ts';
import type { WorkloadEvent } from '../../model/services/workload.ts';
import { runToEnd, type Steps } from '../../runtime/turns.ts';
import type { XdsUpdater } from './registry.ts';
import { ShardRegistry } from './shard-registry.ts';

export interface ObjectServices {
  services(): Iterable<Service>;
  servicesOf(hostname: string, namespace: string): readonly Service[];
  readonly lookup: ProxyLookup;
  applyInSteps(
    changes: readonly ConfigObjectChange<Config>[],
    workloads: readonly WorkloadEvent[],
  ): Steps<RegistryDelta>;
}

/** The owner of the objects (a directory, or informers of a cluster) reports changes, which are queued until `run`. */
export abstract class ObjectRegistry extends ShardRegistry {
  readonly #model: ObjectServices;
  #queuedChanges: ConfigObjectChange<Config>[] = [];
  #queuedWorkloads: WorkloadEvent[] = [];

  constructor(shard: ShardKey, model: ObjectServices, updater: XdsUpdater) {
    super(shard, updater);
    this.#model = model;
  }

  services(): readonly Service[] {
    return [...this.#model.services()];
  }

  servicesOf(hostname: string, namespace: string): readonly Service[] {
    return this.#model.servicesOf(hostname, namespace);
  }

  get lookup(): ProxyLookup {
    return this.#model.lookup;
  }

  /** Changes of one object must be in order. */
  objectsChanged(changes: readonly ConfigObjectChange<Config>[]): void {
    runToEnd(this.changeObjectsInSteps(changes));
  }

  /** No other change may be applied until the steps finish. */
  *changeObjectsInSteps(changes: readonly ConfigObjectChange<Config>[]): Steps<void> {
    if (this.handlers.isRunning) yield* this.#applyQueued(changes, []);
    else for (const change of changes) this.#queuedChanges.push(change);
  }

  /** Services of this registry can select workloads of other registries. */
  *changeWorkloadsInSteps(events: readonly WorkloadEvent[]): Steps<void> {
    if (this.handlers.isRunning) yield* this.#applyQueued([], events);
    else for (const event of events) this.#queuedWorkloads.push(event);
  }

  protected override deliverPending(): void {
    const [changes, workloads] = [this.#queuedChanges, this.#queuedWorkloads];
    this.#queuedChanges = [];
    this.#queuedWorkloads = [];
    runToEnd(this.#applyQueued(changes, workloads));
  }

  *#applyQueued(changes: readonly ConfigObjectChange<Config>[], workloads: readonly WorkloadEvent[]): Steps<void> {
    const delta = yield* this.#model.applyInSteps(changes, workloads);
    yield* this.deliverInSteps(delta);
    this.onApplied(delta);
  }

  protected onApplied(_delta: RegistryDelta): void {}
}
