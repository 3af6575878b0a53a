import { createHash } from 'node:crypto';
import type {
  ConsulWatchOrder,
  ReadOrder,
  ReadOutcome,
  SurveyOutcome,
} from '../../../machines/discovery/consul/consul-catalog.machine.ts';
import type {
  CatalogChanged,
  IndexRegressed,
  QueryFailed,
} from '../../../machines/discovery/consul/consul-protocol.ts';
import { nodeNames, serviceNames } from '../../model/services/consul/catalog-json.ts';
import type { ConsulOptions } from '../../model/services/consul/consul-service.ts';
import type { ShardKey } from '../../model/services/endpoint-shards.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { readCredentialFile } from '../kubernetes/access/credential-file.ts';
import type { Registry, XdsUpdater } from '../registry/registry.ts';
import { get, type ReadCatalog, readCatalog } from './catalog-queries.ts';
import { CatalogStore } from './catalog-store.ts';
import { CatalogWatch } from './catalog-watch.ts';
import { ConsulClient } from './consul-client.ts';
import { consulFailureOf } from './consul-error.ts';
import { ConsulRegistry } from './consul-registry.ts';
import { type ConsulSettings, consulAccess, credentialFiles } from './consul-settings.ts';

export interface ConsulDatacenterOptions {
  /** Empty for the agent's datacenter. */
  readonly name: string;
  readonly settings: ConsulSettings;
  readonly log: Logger;
}

export type DatacenterCondition = 'reading' | 'synced' | 'held' | 'failing';

export interface DatacenterView {
  readonly registry: string;
  readonly datacenter: string;
  readonly server: string;
  readonly condition: DatacenterCondition;
  readonly reason: string;
  /** ISO 8601. */
  readonly since: string;
  readonly strategy: string;
  readonly transport: string;
  readonly connections: number;
  readonly requests: number;
  readonly last: { readonly nodes: number; readonly services: number; readonly instances: number };
  readonly restricted: boolean;
  readonly problems: Readonly<Record<string, readonly string[]>>;
}

/** Used until the actual name is known. */
const ownDatacenter = 'local';
const maxListedProblems = 1_000;

export class ConsulDatacenter {
  readonly shard: ShardKey;
  readonly #options: ConsulDatacenterOptions;
  readonly #client: ConsulClient;
  readonly #store = new CatalogStore();
  readonly #registries = new Set<ConsulRegistry>();
  readonly #problems = new Map<string, readonly string[]>();
  #lastCatalog: ReadCatalog | undefined;
  #strategy = '';
  #condition: DatacenterCondition = 'reading';
  #reason = '';
  #conditionSince = new Date();
  #credentials: string;

  constructor(options: ConsulDatacenterOptions) {
    this.#options = options;
    const { name, settings } = options;
    this.shard = { provider: 'Consul', cluster: name || ownDatacenter };
    this.#client = new ConsulClient(consulAccess(settings), name);
    this.#credentials = digestOf(settings);
  }

  createRegistry(options: ConsulOptions, updates: XdsUpdater): Registry {
    return new ConsulRegistry(this.shard, options, updates, {
      attach: (registry) => {
        this.#registries.add(registry);
        registry.applyHosts([...this.#store.appliedHosts()]);
        if (this.#store.isApplied) registry.complete();
      },
      detach: (registry) => void this.#registries.delete(registry),
      problems: (hostname, problems) => this.#report(hostname, problems),
    });
  }

  async querySizes(signal: AbortSignal): Promise<SurveyOutcome> {
    try {
      const [nodes, services] = await Promise.all([
        get(this.#client, 'nodes', { signal }),
        get(this.#client, 'services', { signal }),
      ]);
      const sizeReport = {
        ...{ nodes: nodeNames(nodes.body).length, services: serviceNames(services.body).length },
        transport: this.#client.transport,
      };
      return { outcome: 'read', survey: sizeReport };
    } catch (error) {
      return { outcome: 'failed', failure: consulFailureOf(error), draw: Math.random() };
    }
  }

  async read({ strategy, maxConnections, consistent }: ReadOrder, signal: AbortSignal): Promise<ReadOutcome> {
    try {
      const catalog = await readCatalog(this.#client, { strategy, maxConnections, isConsistent: consistent, signal });
      signal.throwIfAborted();
      this.#lastCatalog = catalog;
      this.#store.replace(catalog);
      this.#strategy = strategy;
      return { outcome: 'read', reading: this.#store.catalogReading };
    } catch (error) {
      return { outcome: 'failed', failure: consulFailureOf(error), draw: Math.random() };
    }
  }

  watch(order: ConsulWatchOrder, report: (event: CatalogChanged | IndexRegressed | QueryFailed) => void): () => void {
    if (this.#lastCatalog === undefined) throw new Error('the catalog was not read');
    const watch = new CatalogWatch({
      client: this.#client,
      store: this.#store,
      order,
      readCatalog: this.#lastCatalog,
      report,
    });
    return () => watch.stop();
  }

  apply(): void {
    const hosts = this.#store.apply();
    this.setCondition('synced', '');
    for (const registry of this.#registries) {
      registry.applyHosts(hosts);
      registry.complete();
    }
  }

  reconnect(): void {
    this.#client.reconnect();
  }

  get credentialFiles(): readonly string[] {
    return credentialFiles(this.#options.settings);
  }

  credentialsChanged(): boolean {
    const currentDigest = digestOf(this.#options.settings);
    const hasChanged = currentDigest !== this.#credentials;
    this.#credentials = currentDigest;
    return hasChanged;
  }

  setCondition(condition: DatacenterCondition, reason: string): void {
    if (condition === this.#condition && reason === this.#reason) return;
    if (condition !== this.#condition) this.#conditionSince = new Date();
    this.#condition = condition;
    this.#reason = reason;
  }

  get conditionText(): string | undefined {
    if (this.#condition !== 'held' && this.#condition !== 'failing') return undefined;
    const problem = this.#condition === 'held' ? 'response held back' : 'not responding';
    const servedText = this.#store.isApplied ? 'serving the last known services' : 'no services known yet';
    return `registry Consul/${this.shard.cluster}: ${problem}, ${servedText}: ${this.#reason}`;
  }

  get view(): DatacenterView {
    const { nodes, services, instances, restricted } = this.#store.catalogReading;
    return {
      ...{ registry: `Consul/${this.shard.cluster}`, datacenter: this.#options.name },
      server: this.#options.settings.server.href,
      ...{ condition: this.#condition, reason: this.#reason, since: this.#conditionSince.toISOString() },
      ...{ strategy: this.#strategy, transport: this.#client.transport, connections: this.#client.usedConnections },
      ...{ requests: this.#client.requests, last: { nodes, services, instances }, restricted },
      problems: Object.fromEntries([...this.#problems].slice(0, maxListedProblems)),
    };
  }

  close(): void {
    this.#client.close();
    this.#registries.clear();
  }

  #report(hostname: string, problems: readonly string[]): void {
    const previous = this.#problems.get(hostname) ?? [];
    if (problems.length === 0) this.#problems.delete(hostname);
    else this.#problems.set(hostname, problems);
    for (const reason of problems) {
      if (!previous.includes(reason)) this.#options.log.warn('consul.serviceIncomplete', { service: hostname, reason });
    }
  }
}

/** An unreadable file is treated as empty. */
function digestOf(settings: ConsulSettings): string {
  const digest = createHash('sha256');
  for (const file of credentialFiles(settings)) digest.update(`${file}\0${textOf(file)}\0`);
  return digest.digest('hex');
}

function textOf(file: string): string {
  try {
    return readCredentialFile(file);
  } catch {
    return '';
  }
}
