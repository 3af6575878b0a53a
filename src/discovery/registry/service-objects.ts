/**
 * Objects that services are built from: those of the configuration, and those of the followed cluster that only the registry reads. An object of the
 * configuration takes precedence over one of the cluster with the same key. Objects beyond the endpoint limit of their namespace are delivered
 * without endpoints.
 */
import type { ConfigProblem } from '../../../machines/discovery/protocol.ts';
import { type Config, configKeyText, parseConfigKey } from '../../model/config/config.ts';
import type { ConfigObjectChange } from '../../model/services/registry-delta.ts';
import type { Steps } from '../../runtime/turns.ts';
import { defaultConfigLimits } from '../config/files/config-limits.ts';
import { EndpointBudget } from '../config/limits/endpoint-budget.ts';
import type { LimitedObject } from '../config/limits/limited-objects.ts';
import type { FollowedObjects } from './followed-objects.ts';
import type { KubernetesRegistry } from './kubernetes-registry.ts';

export interface ServiceObjectsOptions {
  /** Absent if no cluster is followed or its services are not read. */
  readonly cluster?: FollowedObjects | undefined;
  /** Endpoints of the services of one namespace (PILOT_MAX_ENDPOINTS_PER_NAMESPACE); by default that of the configuration limits. */
  readonly maxEndpointsPerNamespace?: number | undefined;
}

/** An object by key `Kind/namespace/name`; `undefined` if it was deleted. */
export type KeyedObject = readonly [key: string, current: Config | undefined];

export interface ObjectsUpdate {
  readonly changes: readonly ConfigObjectChange<Config>[];
  /** Objects of the configuration that were added, updated or deleted. */
  readonly events: readonly ObjectEvent[];
}

export interface ObjectEvent {
  readonly key: string;
  readonly event: 'add' | 'update' | 'delete';
}

/** Reports since the last call. */
export interface ServiceObjectReport {
  readonly problems: readonly ConfigProblem[];
  readonly recovered: readonly string[];
  /** Changed objects of the cluster. */
  readonly events: readonly ObjectEvent[];
  /** Objects that became limited or unlimited. */
  readonly limits: readonly (readonly [key: string, limited: LimitedObject | undefined])[];
}

type Limited = ReadonlyMap<string, LimitedObject>;

export class ServiceObjects {
  readonly #options: ServiceObjectsOptions;
  /** The registry that keeps the objects of the cluster. */
  readonly #registry: () => Pick<KubernetesRegistry, 'objectOf' | 'objects'>;
  #budget: EndpointBudget;
  readonly #configured = new Map<string, Config>();
  #hasUpdated = false;
  #limited: Limited = new Map();
  #reportedLimits: Limited = this.#limited;
  #problems: ConfigProblem[] = [];
  #recovered: string[] = [];
  #clusterEvents: ObjectEvent[] = [];

  constructor(options: ServiceObjectsOptions, registry: () => Pick<KubernetesRegistry, 'objectOf' | 'objects'>) {
    this.#options = options;
    this.#registry = registry;
    this.#budget = this.#newBudget();
  }

  /** Objects of the configuration before limits. */
  get configured(): ReadonlyMap<string, Config> {
    return this.#configured;
  }

  /** Objects that only the registry reads of the cluster. */
  *clusterObjects(): Iterable<Config> {
    if (this.#options.cluster === undefined) return;
    for (const object of this.#registry().objects()) if (!this.#configured.has(configKeyText(object))) yield object;
  }

  /** Calls the listener when the cluster has changes, which the next {@link updating} reads. */
  onClusterChanged(listener: () => void): void {
    this.#options.cluster?.onChanged(listener);
  }

  get limitedCount(): number {
    return this.#limited.size;
  }

  limitOf(key: string): LimitedObject | undefined {
    return this.#limited.get(key);
  }

  /** An object of the configuration, without endpoints if it is beyond the limit. */
  limitedConfigured(key: string): Config | undefined {
    return this.#limited.get(key)?.config ?? this.#configured.get(key);
  }

  /** Applies changes of the configuration, and the changes of the cluster since the last call. */
  *updating(configured: Iterable<KeyedObject>): Steps<ObjectsUpdate> {
    const { cluster } = this.#options;
    this.#hasUpdated = true;
    const changedObjects = new Map<string, Config | undefined>();
    const events: ObjectEvent[] = [];
    for (const [key, current] of configured) {
      const previous = this.#configured.get(key);
      if (previous === current) continue;
      if (current === undefined) this.#configured.delete(key);
      else this.#configured.set(key, current);
      changedObjects.set(key, current ?? cluster?.get(key));
      events.push({ key, event: eventOf(previous, current) });
      yield;
    }
    if (cluster !== undefined) {
      const { changes, problems, recovered } = yield* cluster.reading((key) => this.#clusterObject(key));
      this.#problems.push(...problems);
      this.#recovered.push(...recovered);
      for (const { key, current } of changes) {
        if (this.#configured.has(key)) continue;
        const previous = this.#clusterObject(key);
        if (previous === current) continue;
        changedObjects.set(key, current);
        this.#clusterEvents.push({ key, event: eventOf(previous, current) });
      }
    }
    return yield* this.#limiting(changedObjects, events);
  }

  /** All objects, for rebuilt registries. Those of the cluster are current. */
  *all(): Steps<ObjectsUpdate> {
    if (!this.#hasUpdated) return { changes: [], events: [] };
    const { cluster } = this.#options;
    const moved = new Map<string, Config | undefined>();
    for (const key of this.#limited.keys()) moved.set(key, undefined);
    for (const config of cluster === undefined ? [] : yield* cluster.all()) moved.set(configKeyText(config), config);
    for (const [key, config] of this.#configured) moved.set(key, config);
    this.#budget = this.#newBudget();
    return yield* this.#limiting(moved, []);
  }

  /** Returns and clears the reports since the last call. */
  takeReport(): ServiceObjectReport {
    const limits = [...changedLimits(this.#reportedLimits, this.#limited)];
    const report = {
      problems: [
        ...this.#problems,
        ...limits.flatMap(([, limited]) => (limited === undefined ? [] : [limited.problem])),
      ],
      recovered: this.#recovered,
      events: this.#clusterEvents,
      limits,
    };
    this.#reportedLimits = this.#limited;
    [this.#problems, this.#recovered, this.#clusterEvents] = [[], [], []];
    return report;
  }

  *#limiting(moved: Map<string, Config | undefined>, events: readonly ObjectEvent[]): Steps<ObjectsUpdate> {
    const given = (key: string): Config | undefined =>
      moved.has(key) ? moved.get(key) : (this.#configured.get(key) ?? this.#clusterObject(key));
    const { limited, changed } = yield* this.#budget.limiting(moved.keys(), given, {}, this.#limited);
    for (const key of changed) if (!moved.has(key)) moved.set(key, given(key));
    const changes: ConfigObjectChange<Config>[] = [];
    for (const [key, current] of moved) {
      const one = limited.get(key);
      changes.push({
        key: parseConfigKey(key),
        current: one?.original === current ? (one?.config ?? current) : current,
      });
      yield;
    }
    if (changed.size > 0) this.#limited = limited;
    return { changes, events };
  }

  /** The registry has the reduced form of a limited object, so its original is used. */
  #clusterObject(key: string): Config | undefined {
    return this.#limited.get(key)?.original ?? this.#registry().objectOf(key);
  }

  #newBudget(): EndpointBudget {
    const { maxEndpointsPerNamespace = defaultConfigLimits.maxEndpointsPerNamespace } = this.#options;
    return new EndpointBudget(maxEndpointsPerNamespace);
  }
}

function* changedLimits(previous: Limited, now: Limited): Generator<readonly [string, LimitedObject | undefined]> {
  if (previous === now) return;
  for (const key of new Set([...previous.keys(), ...now.keys()]))
    if (previous.get(key) !== now.get(key)) yield [key, now.get(key)];
}

function eventOf(previous: Config | undefined, current: Config | undefined): ObjectEvent['event'] {
  return current === undefined ? 'delete' : previous === undefined ? 'add' : 'update';
}
