/** Each blocking query continues from the index of its last response. The watch ends at the first failure or lower index. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ConsulWatchOrder } from '../../../machines/discovery/consul/consul-catalog.machine.ts';
import type {
  CatalogChanged,
  IndexRegressed,
  QueryFailed,
} from '../../../machines/discovery/consul/consul-protocol.ts';
import { failingChecks, nodeNames } from '../../model/services/consul/catalog-json.ts';
import type { ConsulInstance } from '../../model/services/consul/consul-instance.ts';
import { type RateLimit, RateLimiter } from '../../runtime/fences/allowance.ts';
import {
  forEachConcurrently,
  get,
  instancesIn,
  meshServices,
  nodePart,
  type QueryKey,
  type ReadCatalog,
  servicePart,
} from './catalog-queries.ts';
import type { CatalogStore, PartKey } from './catalog-store.ts';
import type { ConsulClient, ConsulQuery, ConsulResponse } from './consul-client.ts';
import { consulFailureOf } from './consul-error.ts';

export interface CatalogWatchOptions {
  readonly client: ConsulClient;
  readonly store: CatalogStore;
  readonly order: ConsulWatchOrder;
  readonly readCatalog: ReadCatalog;
  readonly pace?: RateLimit;
  readonly report: (event: CatalogChanged | IndexRegressed | QueryFailed) => void;
}

/** A faster response is followed by a delay, so that a server or proxy that does not block is not queried in a tight loop. */
const minQueryMs = 20;
const firstPauseMs = 50;
const maxPauseMs = 5_000;
/** Limits the load if the indexes of a server rise continuously. The burst allows thousands of instances to change together. */
const responsePace: RateLimit = { burst: 5_000, perSecond: 500 };
const paceWaitMs = 100;
const coarseIntervalMs = 2_000;
const maxCoarseReads = 20;

export class CatalogWatch {
  readonly #options: CatalogWatchOptions;
  readonly #stopController = new AbortController();
  readonly #partWatches = new Map<PartKey, AbortController>();
  readonly #allowance: RateLimiter;
  #isReportPending = false;
  #coarseParts: readonly PartKey[];

  constructor(options: CatalogWatchOptions) {
    this.#options = options;
    this.#allowance = new RateLimiter(options.pace ?? responsePace);
    const { indexes } = options.readCatalog;
    this.#coarseParts = [...options.readCatalog.instancesByPart.keys()];
    const isCoarse = options.order.strategy === 'coarse';
    for (const [key, index] of indexes) {
      if (!key.includes('/')) this.#watchQuery(key, index, this.#stopController.signal);
      else if (!isCoarse) this.#watchPart(key, index);
    }
  }

  stop(): void {
    this.#stopController.abort();
    for (const partWatch of this.#partWatches.values()) partWatch.abort();
  }

  #watchPart(key: PartKey, index: number): void {
    const partController = new AbortController();
    this.#partWatches.set(key, partController);
    this.#watchQuery(key, index, partController.signal);
  }

  #watchQuery(key: QueryKey, fromIndex: number, signal: AbortSignal): void {
    this.#run(key, fromIndex, signal).catch((error: unknown) => {
      if (signal.aborted || this.#stopController.signal.aborted) return;
      this.#stopAndReport({ type: 'query.failed', failure: consulFailureOf(error), draw: Math.random() });
    });
  }

  async #run(key: QueryKey, fromIndex: number, signal: AbortSignal): Promise<void> {
    let index = fromIndex;
    let pauseMs = firstPauseMs;
    while (!signal.aborted) {
      const sentAt = performance.now();
      const response = await this.#get(key, { index, signal });
      while (!this.#allowance.tryTake()) await sleep(paceWaitMs, undefined, { signal });
      if (signal.aborted) return;
      const isNew = response.index !== index;
      if (response.index < index && !isAboutMissingNode(key, response)) {
        this.#stopAndReport({ type: 'index.regressed', query: key });
        return;
      }
      index = response.index;
      if (isNew) {
        if (await this.#applyResponse(key, response, signal)) this.#onChange();
        pauseMs = firstPauseMs;
      } else if (performance.now() - sentAt < minQueryMs) {
        await sleep(pauseMs, undefined, { signal });
        pauseMs = Math.min(pauseMs * 2, maxPauseMs);
      }
    }
  }

  async #get(key: QueryKey, query: ConsulQuery): Promise<ConsulResponse> {
    const { client, readCatalog } = this.#options;
    const response = await get(client, key, query);
    if (!query.signal.aborted) readCatalog.sizes.set(key, response.bytes);
    return response;
  }

  async #applyResponse(key: QueryKey, response: ConsulResponse, signal: AbortSignal): Promise<boolean> {
    const { store } = this.#options;
    const wasRestricted = store.catalogReading.restricted;
    store.setRestricted(response.isRestricted);
    const hasChanged = await this.#applyContent(key, response.body, signal);
    return hasChanged || store.catalogReading.restricted !== wasRestricted;
  }

  async #applyContent(key: QueryKey, body: unknown, signal: AbortSignal): Promise<boolean> {
    const { store, order } = this.#options;
    switch (key) {
      case 'checks':
        return store.replaceChecks(failingChecks(body));
      case 'nodes': {
        const names = nodeNames(body);
        const isChanged = store.setNodes(names);
        if (order.strategy === 'nodes') return (await this.#watchOnly(names.map(nodePart), signal)) || isChanged;
        return order.strategy === 'coarse' ? (await this.#readAll(this.#coarseParts, signal)) || isChanged : isChanged;
      }
      case 'services': {
        const keys = meshServices(body).map(servicePart);
        return order.strategy === 'coarse' ? this.#readAll(keys, signal) : this.#watchOnly(keys, signal);
      }
      default:
        return this.#applyPart(key, instancesIn(key, body), signal);
    }
  }

  /** Checks of a new instance are in another response, which must be stored first. */
  async #applyPart(
    key: PartKey,
    instances: readonly ConsulInstance[] | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { store, order } = this.#options;
    const isWithoutChecks = order.strategy !== 'services';
    if (isWithoutChecks && instances !== undefined && store.addedTo(key, instances) > 0) {
      const { body } = await this.#get('checks', { signal });
      if (signal.aborted) return false;
      store.replaceChecks(failingChecks(body));
    }
    return store.setPart(key, instances);
  }

  /** Reads and watches new parts, and removes parts of deleted nodes and services. */
  async #watchOnly(keys: readonly PartKey[], signal: AbortSignal): Promise<boolean> {
    const { store, readCatalog } = this.#options;
    const current = new Set(keys);
    let isChanged = false;
    for (const [key, partWatch] of this.#partWatches) {
      if (current.has(key)) continue;
      partWatch.abort();
      this.#partWatches.delete(key);
      readCatalog.sizes.delete(key);
      isChanged = store.setPart(key, undefined) || isChanged;
    }
    const addedKeys = keys.filter((key) => !this.#partWatches.has(key));
    await forEachConcurrently(addedKeys, maxCoarseReads, async (key) => {
      const { body, index, isRestricted } = await this.#get(key, { signal });
      if (signal.aborted) return;
      store.setRestricted(isRestricted);
      isChanged = (await this.#applyPart(key, instancesIn(key, body), signal)) || isChanged;
      this.#watchPart(key, index);
    });
    return isChanged;
  }

  /** Reads all services, because the coarse strategy does not know which ones changed. */
  async #readAll(keys: readonly PartKey[], signal: AbortSignal): Promise<boolean> {
    const { store, readCatalog } = this.#options;
    let isChanged = false;
    const previous = this.#coarseParts;
    this.#coarseParts = keys;
    const currentKeys = new Set(keys);
    for (const key of previous) {
      if (currentKeys.has(key)) continue;
      readCatalog.sizes.delete(key);
      isChanged = store.setPart(key, undefined) || isChanged;
    }
    await forEachConcurrently(keys, Math.min(maxCoarseReads, this.#options.order.maxConnections), async (key) => {
      const { body, isRestricted } = await this.#get(key, { signal });
      if (signal.aborted) return;
      store.setRestricted(isRestricted);
      isChanged = (await this.#applyPart(key, instancesIn(key, body), signal)) || isChanged;
    });
    // Reports the change before the delay, because the next response may arrive immediately.
    if (isChanged) this.#onChange();
    await sleep(coarseIntervalMs, undefined, { signal });
    return false;
  }

  #onChange(): void {
    if (this.#isReportPending) return;
    this.#isReportPending = true;
    // Combines responses that one change causes at the same time.
    setImmediate(() => {
      this.#isReportPending = false;
      if (!this.#stopController.signal.aborted)
        this.#options.report({ type: 'catalog.changed', reading: this.#options.store.catalogReading });
    });
  }

  #stopAndReport(event: IndexRegressed | QueryFailed): void {
    this.stop();
    this.#options.report(event);
  }
}

/**
 * The response for a missing node has index 1, which does not indicate lost data. The list of nodes determines
 * whether the node exists.
 */
function isAboutMissingNode(key: QueryKey, { body }: ConsulResponse): boolean {
  return key.startsWith('node/') && instancesIn(key, body) === undefined;
}
