/**
 * Virtual services by gateway and by who sees them, delegates merged in (spec/discovery.md §6.3). Immutable; the next
 * index is made from the last one by what differs, and what does not keeps its identity.
 */

import { changedList, listDiff } from '../collections/list-diff.ts';
import type { Origin } from '../config/config.ts';
import { byAge, type Config, type ConfigKey, configKeyOf } from '../config/config.ts';
import type { HostNames } from '../fields/hostname.ts';
import type { HttpRoute, VirtualService } from '../kinds/virtual-service.ts';
import { exportSet, isExportedTo, isPublic } from '../services/visibility.ts';
import { mergeDelegateRoutes } from './merge-delegates.ts';
import { resolveVirtualService, shortNamesText } from './resolve-virtual-service.ts';
import type { ResolvedVirtualService } from './resolved-rules.ts';

type Source = Config<VirtualService>;

/** One object as it takes effect. */
interface Exported {
  /** As resolved, delegates not merged. */
  readonly config: Source;
  readonly exportTo: ReadonlySet<string>;
  /** Absent for a delegate: it has no hosts. */
  readonly virtualService?: ResolvedVirtualService;
}

/** What is bound to one gateway, oldest first. */
interface Bucket {
  readonly items: readonly Exported[];
  /** Of all items. */
  readonly services: readonly ResolvedVirtualService[];
  /** Everybody sees the same. */
  readonly isPublic: boolean;
  /** By namespace, made when asked for. */
  readonly visible: Map<string, readonly ResolvedVirtualService[]>;
}

export class VirtualServiceIndex {
  private readonly sources: readonly Source[];
  private readonly bySource: ReadonlyMap<Source, Exported>;
  private readonly delegates: ReadonlyMap<string, Exported>;
  /** Sources of those that have delegates merged in. */
  private readonly roots: ReadonlySet<Source>;
  private readonly byGateway: ReadonlyMap<string, Bucket>;
  /** Of sources with short names whose meaning services decide: what they mean. */
  private readonly shortNames: ReadonlyMap<Source, string>;
  /** Objects as they were in the index before, whose short names mean something else now. */
  readonly renamed: readonly ConfigKey[];

  /**
   * @param configs oldest first
   * @param previous an index with the same settings; services may be others
   */
  constructor(
    configs: readonly Source[],
    hostNames: HostNames,
    defaultExportTo: readonly string[],
    previous?: VirtualServiceIndex,
  ) {
    this.sources = configs;
    const edited = listDiff(previous?.sources ?? [], configs);
    const gone = new Set(edited.removed);
    const renamed = (previous?.withOtherNames(hostNames) ?? []).filter((source) => !gone.has(source));
    this.renamed = renamed.map(configKeyOf);
    const diff = { removed: [...edited.removed, ...renamed], added: [...edited.added, ...renamed] };
    this.shortNames = changedNames(previous?.shortNames, diff, hostNames);
    const bySource = new Map(previous?.bySource);
    const delegates = new Map(previous?.delegates);
    const roots = new Set(previous?.roots);
    const removed = new Set<Exported>();
    const changedDelegates = new Set<string>();
    for (const source of diff.removed) {
      const old = bySource.get(source)!;
      removed.add(old);
      bySource.delete(source);
      roots.delete(source);
      if (old.virtualService === undefined) changedDelegates.add(idOf(old.config));
    }
    for (const id of changedDelegates) delegates.delete(id);
    const plain = diff.added.map((source) => {
      const exportTo = exportSet(source.spec.exportTo, defaultExportTo);
      return [source, { config: resolveVirtualService(source, hostNames), exportTo } as Exported] as const;
    });
    for (const [source, one] of plain) {
      bySource.set(source, one);
      if (one.config.spec.hosts.length > 0) continue;
      delegates.set(idOf(one.config), one);
      changedDelegates.add(idOf(one.config));
    }
    // Those that were there, and lead to a delegate that is another now, take effect in another way.
    const again = [...roots].filter((source) => {
      return bySource.get(source)!.virtualService!.origins.some((key) => changedDelegates.has(idOf(key)));
    });
    const added: Exported[] = [];
    for (const source of [...plain.filter(([, one]) => one.config.spec.hosts.length > 0).map(([s]) => s), ...again]) {
      const { config, exportTo, virtualService: before } = bySource.get(source)!;
      if (before !== undefined) removed.add(bySource.get(source)!);
      const virtualService = withDelegates(config, delegates);
      const one = { config, exportTo, virtualService };
      bySource.set(source, one);
      if (virtualService.config !== config) roots.add(source);
      added.push(one);
    }
    this.bySource = bySource;
    this.delegates = delegates;
    this.roots = roots;
    this.byGateway = changedBuckets(previous?.byGateway ?? new Map(), removed, added);
  }

  /** Oldest first. */
  for(gateway: string, namespace: string): readonly ResolvedVirtualService[] {
    const bucket = this.byGateway.get(gateway);
    if (bucket === undefined) return [];
    if (bucket.isPublic) return bucket.services;
    let visible = bucket.visible.get(namespace);
    if (visible === undefined) {
      visible = bucket.items
        .filter(({ config, exportTo }) => isExportedTo(exportTo, config.namespace, namespace))
        .map(({ virtualService }) => virtualService!);
      bucket.visible.set(namespace, visible);
    }
    return visible;
  }

  /** Whether all short names mean what they meant. */
  isCurrent(hostNames: HostNames): boolean {
    return this.withOtherNames(hostNames).length === 0;
  }

  private withOtherNames(hostNames: HostNames): Source[] {
    return [...this.shortNames].filter(([one, text]) => shortNamesText(one, hostNames) !== text).map(([one]) => one);
  }
}

const noNames: ReadonlyMap<Source, string> = new Map();

function changedNames(
  before: ReadonlyMap<Source, string> = noNames,
  { removed, added }: { readonly removed: readonly Source[]; readonly added: readonly Source[] },
  hostNames: HostNames,
): ReadonlyMap<Source, string> {
  if (hostNames.isFixed || removed.length + added.length === 0) return before;
  const names = new Map(before);
  for (const source of removed) names.delete(source);
  for (const source of added) {
    const text = shortNamesText(source, hostNames);
    if (text !== '') names.set(source, text);
  }
  return names;
}

function changedBuckets(
  before: ReadonlyMap<string, Bucket>,
  removed: ReadonlySet<Exported>,
  added: readonly Exported[],
): Map<string, Bucket> {
  const buckets = new Map(before);
  const come = byGatewayName(added);
  for (const gateway of new Set([...byGatewayName(removed).keys(), ...come.keys()])) {
    const old = before.get(gateway)?.items ?? [];
    const bound = come.get(gateway) ?? [];
    const items = changedList(old, removed, bound, byConfigAge);
    if (items.length === 0) buckets.delete(gateway);
    else if (items !== old) {
      const services = items.map(({ virtualService }) => virtualService!);
      const all = items.every(({ exportTo }) => isPublic(exportTo));
      buckets.set(gateway, { items, services, isPublic: all, visible: new Map() });
    }
  }
  return buckets;
}

function byGatewayName(items: Iterable<Exported>): Map<string, Exported[]> {
  const groups = new Map<string, Exported[]>();
  for (const item of items) {
    for (const gateway of new Set(item.config.spec.gateways)) {
      const group = groups.get(gateway);
      if (group === undefined) groups.set(gateway, [item]);
      else group.push(item);
    }
  }
  return groups;
}

function byConfigAge(a: Exported, b: Exported): number {
  return byAge(a.config, b.config);
}

function idOf({ namespace, name }: Pick<ConfigKey, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`;
}

/** A delegate that is not there, or not exported to the root's namespace, gives no routes. */
function withDelegates(config: Source, delegates: ReadonlyMap<string, Exported>): ResolvedVirtualService {
  const own = configKeyOf(config);
  if (!config.spec.http?.some((route) => route.delegate !== undefined)) return { config, origins: [own] };
  const origins: ConfigKey[] = [own];
  const http: HttpRoute[] = [];
  const httpOrigins: (readonly Origin[])[] = [];
  for (const [rootIndex, root] of config.spec.http.entries()) {
    const here: Origin = { key: own, path: ['spec', 'http', rootIndex] };
    if (root.delegate === undefined) {
      http.push(root);
      httpOrigins.push([here]);
      continue;
    }
    const { name, namespace = config.namespace } = root.delegate;
    const key = { kind: 'VirtualService', namespace, name };
    // Also when it is not there yet: its coming changes this object.
    origins.push(key);
    const delegate = delegates.get(`${namespace}/${name}`);
    if (delegate === undefined || !isExportedTo(delegate.exportTo, namespace, config.namespace)) continue;
    for (const { route, index } of mergeDelegateRoutes(root, delegate.config.spec.http ?? [])) {
      http.push(route);
      httpOrigins.push([{ key, path: ['spec', 'http', index] }, here]);
    }
  }
  return { config: { ...config, spec: { ...config.spec, http } }, origins, httpOrigins };
}
