/**
 * Services are built from objects of the configuration, and from those of the watched cluster that only the registry reads. For equal keys, the
 * configuration takes precedence.
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
  /** Absent without a watched cluster, or if its services are not read. */
  readonly cluster?: FollowedObjects | undefined;
  /** PILOT_MAX_ENDPOINTS_PER_NAMESPACE. Defaults to the configuration limits. */
  readonly maxEndpointsPerNamespace?: number | undefined;
}

/** `KIND/NAMESPACE/NAME`. `undefined` if the object was deleted. */
export type KeyedObject = readonly [key: string, current: Config | undefined];

export interface ObjectsUpdate {
  readonly changes: readonly ConfigObjectChange<Config>[];
  readonly events: readonly ObjectEvent[];
}

export interface ObjectEvent {
  readonly key: string;
  readonly event: 'add' | 'update' | 'delete';
}

export interface ServiceObjectReport {
  readonly problems: readonly ConfigProblem[];
  readonly recovered: readonly string[];
  readonly events: readonly ObjectEvent[];
  readonly limits: readonly (readonly [key: string, limited: LimitedObject | undefined])[];
}

type LimitedByKey = ReadonlyMap<string, LimitedObject>;

export class ServiceObjects {
  readonly #options: ServiceObjectsOptions;
  readonly #registry: () => Pick<KubernetesRegistry, 'objectOf' | 'objects'>;
  #budget: EndpointBudget;
  readonly #configuredObjects = new Map<string, Config>();
  #hasUpdated = false;
  #limitedEntries: LimitedByKey = new Map();
  #reportedLimits: LimitedByKey = this.#limitedEntries;
  #problems: ConfigProblem[] = [];
  #recoveredObjects: string[] = [];
  #clusterEvents: ObjectEvent[] = [];

  constructor(options: ServiceObjectsOptions, registry: () => Pick<KubernetesRegistry, 'objectOf' | 'objects'>) {
    this.#options = options;
    this.#registry = registry;
    this.#budget = this.#newBudget();
  }

  get configuredObjects(): ReadonlyMap<string, Config> {
    return this.#configuredObjects;
  }

  *clusterObjects(): Iterable<Config> {
    if (this.#options.cluster === undefined) return;
    for (const object of this.#registry().objects())
      if (!this.#configuredObjects.has(configKeyText(object))) yield object;
  }

  /** The next {@link updateInSteps} reads the changes. */
  onClusterChanged(listener: () => void): void {
    this.#options.cluster?.onChanged(listener);
  }

  get limitedCount(): number {
    return this.#limitedEntries.size;
  }

  limitOf(key: string): LimitedObject | undefined {
    return this.#limitedEntries.get(key);
  }

  /** An object that exceeds the limit has no endpoints. */
  limitedConfigured(key: string): Config | undefined {
    return this.#limitedEntries.get(key)?.config ?? this.#configuredObjects.get(key);
  }

  /** Includes changes of the cluster since the last call. */
  *updateInSteps(configuredObjects: Iterable<KeyedObject>): Steps<ObjectsUpdate> {
    const { cluster } = this.#options;
    this.#hasUpdated = true;
    const changedObjects = new Map<string, Config | undefined>();
    const events: ObjectEvent[] = [];
    for (const [key, current] of configuredObjects) {
      const previous = this.#configuredObjects.get(key);
      if (previous === current) continue;
      if (current === undefined) this.#configuredObjects.delete(key);
      else this.#configuredObjects.set(key, current);
      changedObjects.set(key, current ?? cluster?.get(key));
      events.push({ key, event: eventOf(previous, current) });
      yield;
    }
    if (cluster !== undefined) {
      const { changes, problems, recovered } = yield* cluster.readInSteps((key) => this.#clusterObject(key));
      this.#problems.push(...problems);
      this.#recoveredObjects.push(...recovered);
      for (const { key, current } of changes) {
        if (this.#configuredObjects.has(key)) continue;
        const previous = this.#clusterObject(key);
        if (previous === current) continue;
        changedObjects.set(key, current);
        this.#clusterEvents.push({ key, event: eventOf(previous, current) });
      }
    }
    return yield* this.#limitInSteps(changedObjects, events);
  }

  *updateAllObjects(): Steps<ObjectsUpdate> {
    if (!this.#hasUpdated) return { changes: [], events: [] };
    const { cluster } = this.#options;
    const changedObjects = new Map<string, Config | undefined>();
    for (const key of this.#limitedEntries.keys()) changedObjects.set(key, undefined);
    for (const config of cluster === undefined ? [] : yield* cluster.readAll())
      changedObjects.set(configKeyText(config), config);
    for (const [key, config] of this.#configuredObjects) changedObjects.set(key, config);
    this.#budget = this.#newBudget();
    return yield* this.#limitInSteps(changedObjects, []);
  }

  drainReport(): ServiceObjectReport {
    const limits = [...changedLimits(this.#reportedLimits, this.#limitedEntries)];
    const report = {
      problems: [
        ...this.#problems,
        ...limits.flatMap(([, limitedEntry]) => (limitedEntry === undefined ? [] : [limitedEntry.problem])),
      ],
      recovered: this.#recoveredObjects,
      events: this.#clusterEvents,
      limits,
    };
    this.#reportedLimits = this.#limitedEntries;
    [this.#problems, this.#recoveredObjects, this.#clusterEvents] = [[], [], []];
    return report;
  }

  *#limitInSteps(
    changedObjects: Map<string, Config | undefined>,
    events: readonly ObjectEvent[],
  ): Steps<ObjectsUpdate> {
    const configBeforeLimit = (key: string): Config | undefined =>
      changedObjects.has(key)
        ? changedObjects.get(key)
        : (this.#configuredObjects.get(key) ?? this.#clusterObject(key));
    const { limitedByKey, changedKeys } = yield* this.#budget.limitInSteps(
      changedObjects.keys(),
      configBeforeLimit,
      {},
      this.#limitedEntries,
    );
    for (const key of changedKeys) if (!changedObjects.has(key)) changedObjects.set(key, configBeforeLimit(key));
    const changes: ConfigObjectChange<Config>[] = [];
    for (const [key, current] of changedObjects) {
      const limitedEntry = limitedByKey.get(key);
      changes.push({
        key: parseConfigKey(key),
        current: limitedEntry?.original === current ? (limitedEntry?.config ?? current) : current,
      });
      yield;
    }
    if (changedKeys.size > 0) this.#limitedEntries = limitedByKey;
    return { changes, events };
  }

  /** If the object is limited, the registry stores the reduced form, so this returns the original. */
  #clusterObject(key: string): Config | undefined {
    return this.#limitedEntries.get(key)?.original ?? this.#registry().objectOf(key);
  }

  #newBudget(): EndpointBudget {
    const { maxEndpointsPerNamespace = defaultConfigLimits.maxEndpointsPerNamespace } = this.#options;
    return new EndpointBudget(maxEndpointsPerNamespace);
  }
}

function* changedLimits(
  previous: LimitedByKey,
  current: LimitedByKey,
): Generator<readonly [string, LimitedObject | undefined]> {
  if (previous === current) return;
  for (const key of new Set([...previous.keys(), ...current.keys()]))
    if (previous.get(key) !== current.get(key)) yield [key, current.get(key)];
}

function eventOf(previous: Config | undefined, current: Config | undefined): ObjectEvent['event'] {
  return current === undefined ? 'delete' : previous === undefined ? 'add' : 'update';
}
