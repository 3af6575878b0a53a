import type { Config } from '../../model/config/config.ts';
import type { ShardKey } from '../../model/services/endpoint-shards.ts';
import type { ProxyLookup } from '../../model/services/proxy-lookup.ts';
import type { ConfigObjectChange, RegistryDelta } from '../../model/services/registry-delta.ts';
import type { Service } from '../../model/services/service.ts';
import type { WorkloadEvent } from '../../model/services/workload.ts';
import { atOnce, type Steps } from '../../runtime/turns.ts';
import type { XdsUpdater } from './registry.ts';
import { ShardRegistry } from './shard-registry.ts';

/** What makes services of objects, without I/O: src/model. */
export interface ObjectServices {
  services(): Iterable<Service>;
  servicesOf(hostname: string, namespace: string): readonly Service[];
  readonly lookup: ProxyLookup;
  applying(changes: readonly ConfigObjectChange<Config>[], workloads: readonly WorkloadEvent[]): Steps<RegistryDelta>;
}

/**
 * A registry whose services are made from objects. The owner of the objects (a directory, the informers of a live cluster)
 * hands their changes over; what comes before the registry runs waits until then.
 */
export abstract class ObjectRegistry extends ShardRegistry {
  readonly #model: ObjectServices;
  #waiting: ConfigObjectChange<Config>[] = [];
  #waitingWorkloads: WorkloadEvent[] = [];

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

  /** Objects that came, changed or went; of the same object in order. */
  objectsChanged(changes: readonly ConfigObjectChange<Config>[]): void {
    atOnce(this.changingObjects(changes));
  }

  /** The same in steps. Nothing else may be told of objects or workloads until these are done. */
  *changingObjects(changes: readonly ConfigObjectChange<Config>[]): Steps<void> {
    if (this.handlers.isRunning) yield* this.#adopting(changes, []);
    else for (const change of changes) this.#waiting.push(change);
  }

  /** Workloads of other registries, which this one's services may select (§5.5), in steps as {@link changingObjects}. */
  *changingWorkloads(events: readonly WorkloadEvent[]): Steps<void> {
    if (this.handlers.isRunning) yield* this.#adopting([], events);
    else for (const event of events) this.#waitingWorkloads.push(event);
  }

  protected override handOver(): void {
    const [changes, workloads] = [this.#waiting, this.#waitingWorkloads];
    this.#waiting = [];
    this.#waitingWorkloads = [];
    atOnce(this.#adopting(changes, workloads));
  }

  *#adopting(changes: readonly ConfigObjectChange<Config>[], workloads: readonly WorkloadEvent[]): Steps<void> {
    const delta = yield* this.#model.applying(changes, workloads);
    yield* this.delivering(delta);
    this.adopted(delta);
  }

  /** For what a kind of registry has to say beyond services and workloads. */
  protected adopted(_delta: RegistryDelta): void {}
}
