/**
 * What the control plane knows at one moment: settings, objects, services, and the push context made of them. The
 * statecharts say when each of these moves on; they know them by version only.
 */
import type { ServicesReading } from '../../../machines/discovery/service-registry.machine.ts';
import { buildPushContext } from '../../model/build-push-context.ts';
import { configKeyText, parseConfigKey } from '../../model/config.ts';
import type { MeshConfig } from '../../model/mesh-config.ts';
import type { PushContext } from '../../model/push-context.ts';
import { registryChanges } from '../../model/registry-changes.ts';
import { buildServiceRegistry, type ServiceRegistry } from '../../model/service-registry.ts';
import type { ConfigDirectory } from '../config/config-directory.ts';
import { ConfigSnapshot } from '../config/config-snapshot.ts';
import type { SettingsFiles } from '../config/settings-files.ts';

export interface MeshStateOptions {
  readonly settings: SettingsFiles;
  /** Absent: nothing is configured. */
  readonly directory?: ConfigDirectory;
  /** `--domain`. */
  readonly domain: string;
  /** `--clusterID`. */
  readonly clusterId: string;
}

/** A context, and what it was built for. */
export interface PublishedContext {
  readonly context: PushContext;
  /** The one before. */
  readonly previous: PushContext | undefined;
  /** Everything may differ from the one before. */
  readonly forced: boolean;
  /** Keys of what differs from the one before. */
  readonly changed: ReadonlySet<string>;
}

export class MeshState {
  readonly settings: SettingsFiles;
  readonly #options: MeshStateOptions;
  readonly #listeners: ((published: PublishedContext) => void)[] = [];
  #registry: ServiceRegistry = { services: [], endpoints: new Map(), made: new Map() };
  #context: PushContext | undefined;
  #counter = 0;

  constructor(options: MeshStateOptions) {
    this.#options = options;
    this.settings = options.settings;
  }

  /** The objects in force. */
  get configs(): ConfigSnapshot {
    return this.#options.directory?.snapshot ?? ConfigSnapshot.empty;
  }

  get registry(): ServiceRegistry {
    return this.#registry;
  }

  /** What proxies are served from; absent until the first one was built. */
  get context(): PushContext | undefined {
    return this.#context;
  }

  get mesh(): MeshConfig {
    return this.settings.mesh;
  }

  /** Called with each new context before anybody is told of it. */
  onPublished(listener: (published: PublishedContext) => void): void {
    this.#listeners.push(listener);
  }

  /** Makes services and endpoints of the objects in force, and says what changed since the last time. */
  computeServices(): ServicesReading {
    const before = this.#registry;
    this.#registry = this.#makeRegistry();
    const changes = registryChanges(before, this.#registry);
    return {
      services: this.#registry.services.length,
      endpoints: countEndpoints(this.#registry),
      changedServices: changes.filter(({ kind }) => kind !== 'Endpoints').map(configKeyText),
      changedEndpoints: changes.filter(({ kind }) => kind === 'Endpoints').map(configKeyText),
    };
  }

  /**
   * Builds the context of this moment and publishes it.
   *
   * @param changed keys of everything that may differ from the last context; it does not matter when `forced`
   */
  publishContext({ forced, changed }: { forced: boolean; changed: readonly string[] }): PushContext {
    const previous = this.#context;
    const { mesh } = this.settings;
    // Services depend on mesh settings: on the trust domain, on who sees them.
    if (forced || previous?.mesh !== mesh) this.#registry = this.#makeRegistry();
    const context = buildPushContext(
      {
        version: `${new Date().toISOString()}/${++this.#counter}`,
        mesh,
        domain: this.#options.domain,
        configs: this.configs.set,
        services: this.#registry.services,
        endpoints: this.#registry.endpoints,
      },
      forced || previous === undefined ? undefined : { context: previous, changed: changed.map(parseConfigKey) },
    );
    this.#context = context;
    const published = { context, previous, forced: forced || previous?.mesh !== mesh, changed: new Set(changed) };
    for (const listener of this.#listeners) listener(published);
    return context;
  }

  #makeRegistry(): ServiceRegistry {
    const { trustDomain, defaultServiceExportTo } = this.mesh;
    const { set } = this.configs;
    return buildServiceRegistry(
      set.ServiceEntry,
      set.WorkloadEntry,
      { trustDomain, clusterId: this.#options.clusterId, defaultServiceExportTo },
      this.#registry,
    );
  }
}

function countEndpoints({ endpoints }: ServiceRegistry): number {
  let count = 0;
  for (const byNamespace of endpoints.values()) for (const list of byNamespace.values()) count += list.length;
  return count;
}
