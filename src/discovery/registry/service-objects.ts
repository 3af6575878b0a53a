/**
 * The objects that services are made from: those of the configuration, and those that only the registry reads of the followed cluster. An object
 * of the configuration takes precedence over one of the cluster with the same key. Beyond the limit of endpoints of a namespace, objects are
 * handed over without theirs.
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
  /** Absent: no cluster is followed, or its services are not asked for. */
  readonly cluster?: FollowedObjects | undefined;
  /** Endpoints of the services of one namespace (PILOT_MAX_ENDPOINTS_PER_NAMESPACE); absent: the default. */
  readonly maxEndpointsPerNamespace?: number | undefined;
}

/** An object by its key `Kind/namespace/name`; `undefined`: there is none. */
export type KeyedObject = readonly [key: string, current: Config | undefined];

export interface ObjectsUpdate {
  /** For the registries. */
  readonly changes: readonly ConfigObjectChange<Config>[];
  /** Objects of the configuration that were added, updated or deleted. */
  readonly events: readonly ObjectEvent[];
}

export interface ObjectEvent {
  readonly key: string;
  readonly event: 'add' | 'update' | 'delete';
}

/** What there is to report of objects since the last time. */
export interface ObjectReport {
  readonly problems: readonly ConfigProblem[];
  readonly recovered: readonly string[];
  /** Of the cluster. */
  readonly events: readonly ObjectEvent[];
  /** Objects whose limit is another. */
  readonly limits: readonly (readonly [key: string, limited: LimitedObject | undefined])[];
}

type Limited = ReadonlyMap<string, LimitedObject>;

export class ServiceObjects {
  readonly #options: ServiceObjectsOptions;
  /** Holds the objects of the cluster. */
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

  /** Objects of the configuration, as they were given. */
  get configured(): ReadonlyMap<string, Config> {
    return this.#configured;
  }

  /** Objects that only the registry reads of the cluster. */
  *ofCluster(): Iterable<Config> {
    if (this.#options.cluster === undefined) return;
    for (const object of this.#registry().objects()) if (!this.#configured.has(configKeyText(object))) yield object;
  }

  /** Calls the listener when the cluster has changes, which the next {@link updating} reads. */
  onClusterChanged(listener: () => void): void {
    this.#options.cluster?.onChanged(listener);
  }

  /** How many objects are beyond the limit. */
  get limitedCount(): number {
    return this.#limited.size;
  }

  limitOf(key: string): LimitedObject | undefined {
    return this.#limited.get(key);
  }

  /** An object of the configuration, without its endpoints if it is beyond the limit. */
  configuredInForce(key: string): Config | undefined {
    return this.#limited.get(key)?.config ?? this.#configured.get(key);
  }

  /** What changes with these objects of the configuration, and with what the cluster has changed since the last time. */
  *updating(configured: Iterable<KeyedObject>): Steps<ObjectsUpdate> {
    const { cluster } = this.#options;
    this.#hasUpdated = true;
    const moved = new Map<string, Config | undefined>();
    const events: ObjectEvent[] = [];
    for (const [key, current] of configured) {
      const before = this.#configured.get(key);
      if (before === current) continue;
      if (current === undefined) this.#configured.delete(key);
      else this.#configured.set(key, current);
      moved.set(key, current ?? cluster?.get(key));
      events.push({ key, event: eventOf(before, current) });
      yield;
    }
    if (cluster !== undefined) {
      const { changes, problems, recovered } = yield* cluster.reading((key) => this.#givenByCluster(key));
      this.#problems.push(...problems);
      this.#recovered.push(...recovered);
      for (const { key, current } of changes) {
        if (this.#configured.has(key)) continue;
        const before = this.#givenByCluster(key);
        if (before === current) continue;
        moved.set(key, current);
        this.#clusterEvents.push({ key, event: eventOf(before, current) });
      }
    }
    return yield* this.#limiting(moved, events);
  }

  /** For registries that were made anew: all objects of earlier updates, those of the cluster as of now. */
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

  /** What happened since the last call. */
  takeReport(): ObjectReport {
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
      moved.has(key) ? moved.get(key) : (this.#configured.get(key) ?? this.#givenByCluster(key));
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

  /** The registry holds what takes the place of a limited object. */
  #givenByCluster(key: string): Config | undefined {
    return this.#limited.get(key)?.original ?? this.#registry().objectOf(key);
  }

  #newBudget(): EndpointBudget {
    const { maxEndpointsPerNamespace = defaultConfigLimits.maxEndpointsPerNamespace } = this.#options;
    return new EndpointBudget(maxEndpointsPerNamespace);
  }
}

function* changedLimits(before: Limited, now: Limited): Generator<readonly [string, LimitedObject | undefined]> {
  if (before === now) return;
  for (const key of new Set([...before.keys(), ...now.keys()]))
    if (before.get(key) !== now.get(key)) yield [key, now.get(key)];
}

function eventOf(before: Config | undefined, current: Config | undefined): ObjectEvent['event'] {
  return current === undefined ? 'delete' : before === undefined ? 'add' : 'update';
}
