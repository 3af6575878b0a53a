import type { WatchStrategy } from '../../../machines/discovery/consul/watch-strategy.ts';
import {
  type ConsulCheck,
  failingChecks,
  InvalidCatalog,
  isMeshService,
  nodeNames,
  nodeServices,
  serviceInstances,
  serviceNames,
} from '../../model/services/consul/catalog-json.ts';
import type { ConsulInstance } from '../../model/services/consul/consul-instance.ts';
import type { CatalogContent, PartKey } from './catalog-store.ts';
import type { ConsulClient, ConsulQuery, ConsulResponse } from './consul-client.ts';

/** `checks` contains only checks that do not pass. */
export type ListKey = 'nodes' | 'services' | 'checks';
export type QueryKey = ListKey | PartKey;

/** Thousands of HTTP/1.1 connections would overload the agent. */
const maxConcurrentReads = 20;
/** HTTP/2 does not need a connection per request. */
const maxConcurrentHttp2Reads = 100;
const failingFilter = 'Status != "passing"';

export interface ReadCatalog extends CatalogContent {
  /** Index of each response, from which its blocking query continues. */
  readonly indexes: ReadonlyMap<QueryKey, number>;
  readonly sizes: CatalogSizes;
}

export const maxCatalogBytes = 256 * 1024 * 1024;

export class CatalogSizes {
  readonly #bytes = new Map<QueryKey, number>();
  #totalBytes = 0;

  /** @throws InvalidCatalog if the catalog exceeds {@link maxCatalogBytes} */
  set(key: QueryKey, bytes: number): void {
    this.#totalBytes += bytes - (this.#bytes.get(key) ?? 0);
    this.#bytes.set(key, bytes);
    if (this.#totalBytes > maxCatalogBytes) throw new InvalidCatalog(`the catalog exceeds ${maxCatalogBytes} bytes`);
  }

  delete(key: QueryKey): void {
    this.#totalBytes -= this.#bytes.get(key) ?? 0;
    this.#bytes.delete(key);
  }
}

export const nodePart = (node: string): PartKey => `node/${node}`;
export const servicePart = (service: string): PartKey => `service/${service}`;

export function get(client: ConsulClient, key: QueryKey, query: ConsulQuery): Promise<ConsulResponse> {
  if (key === 'nodes' || key === 'services') return client.get(`catalog/${key}`, query);
  if (key === 'checks') return client.get('health/state/any', { ...query, filter: failingFilter });
  const [kind, name] = [key.slice(0, key.indexOf('/')), encodeURIComponent(key.slice(key.indexOf('/') + 1))];
  return client.get(kind === 'node' ? `catalog/node-services/${name}` : `health/service/${name}`, query);
}

/**
 * `undefined` if the node does not exist.
 *
 * @throws InvalidCatalog
 */
export function instancesIn(key: PartKey, body: unknown): readonly ConsulInstance[] | undefined {
  if (key.startsWith('service/')) return serviceInstances(body);
  const { node, instances } = nodeServices(body);
  return node === undefined ? undefined : instances;
}

/** @throws InvalidCatalog */
export const meshServices = (body: unknown): readonly string[] => serviceNames(body).filter(isMeshService);

export interface CatalogReadOptions {
  readonly strategy: WatchStrategy;
  readonly maxConnections: number;
  readonly isConsistent: boolean;
  readonly signal: AbortSignal;
}

/** @throws ConsulError, InvalidCatalog */
export async function readCatalog(client: ConsulClient, options: CatalogReadOptions): Promise<ReadCatalog> {
  const { strategy, maxConnections, isConsistent, signal } = options;
  const indexes = new Map<QueryKey, number>();
  const sizes = new CatalogSizes();
  let isRestricted = false;
  const readBody = async (key: QueryKey): Promise<unknown> => {
    const response = await get(client, key, { isConsistent, signal });
    indexes.set(key, response.index);
    sizes.set(key, response.bytes);
    isRestricted ||= response.isRestricted;
    return response.body;
  };
  const nodes = nodeNames(await readBody('nodes'));
  const keys = strategy === 'nodes' ? nodes.map(nodePart) : meshServices(await readBody('services')).map(servicePart);
  const partsByKey = new Map<PartKey, readonly ConsulInstance[]>();
  const isHttp2 = client.transport === 'HTTP/2';
  const maxConcurrent = isHttp2 ? maxConcurrentHttp2Reads : Math.min(maxConcurrentReads, maxConnections);
  await forEachConcurrently(keys, maxConcurrent, async (key) => {
    const instances = instancesIn(key, await readBody(key));
    if (instances !== undefined) partsByKey.set(key, instances);
  });
  // Checks are read after the instances, because older checks would not contain failures of new instances.
  const checks: readonly ConsulCheck[] = strategy === 'services' ? [] : failingChecks(await readBody('checks'));
  return { nodes, instancesByPart: partsByKey, checks, isRestricted: isRestricted, indexes, sizes };
}

export async function forEachConcurrently<Item>(
  items: readonly Item[],
  concurrency: number,
  task: (item: Item) => Promise<void>,
): Promise<void> {
  const remainingItems = items.values();
  const worker = async (): Promise<void> => {
    for (const item of remainingItems) await task(item);
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, worker));
}
