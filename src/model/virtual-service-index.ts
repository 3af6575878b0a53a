/**
 * Virtual services by gateway and by who sees them, delegates merged in (spec/discovery.md §6.3). Immutable; the next
 * index is made from the last one by what differs, and what does not keeps its identity.
 */
import { byAge, type Config, type ConfigKey, configKeyOf } from './config.ts';
import type { HttpRoute, VirtualService } from './kinds/virtual-service.ts';
import { changedList, listDiff } from './list-diff.ts';
import { mergeDelegateRoutes } from './merge-delegates.ts';
import { resolveVirtualService } from './resolve-virtual-service.ts';
import type { ResolvedVirtualService } from './resolved-rules.ts';
import { exportSet, isExportedTo, isPublic } from './visibility.ts';

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

interface About {
  readonly domain: string;
  readonly defaultExportTo: readonly string[];
}

export class VirtualServiceIndex {
  private readonly about: About;
  private readonly sources: readonly Source[];
  private readonly bySource: ReadonlyMap<Source, Exported>;
  private readonly delegates: ReadonlyMap<string, Exported>;
  /** Sources of those that have delegates merged in. */
  private readonly roots: ReadonlySet<Source>;
  private readonly byGateway: ReadonlyMap<string, Bucket>;

  /**
   * @param configs oldest first
   * @param previous an index with the same settings
   */
  constructor(
    configs: readonly Source[],
    domain: string,
    defaultExportTo: readonly string[],
    previous?: VirtualServiceIndex,
  ) {
    this.about = { domain, defaultExportTo };
    this.sources = configs;
    const diff = listDiff(previous?.sources ?? [], configs);
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
    const plain = diff.added.map((source) => [source, this.resolved(source)] as const);
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

  private resolved(source: Source): Exported {
    return {
      config: resolveVirtualService(source, this.about.domain),
      exportTo: exportSet(source.spec.exportTo, this.about.defaultExportTo),
    };
  }
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
  const http = config.spec.http.flatMap((route): HttpRoute[] => {
    if (route.delegate === undefined) return [route];
    const { name, namespace = config.namespace } = route.delegate;
    // Also when it is not there yet: its coming changes this object.
    origins.push({ kind: 'VirtualService', namespace, name });
    const delegate = delegates.get(`${namespace}/${name}`);
    if (delegate === undefined || !isExportedTo(delegate.exportTo, namespace, config.namespace)) return [];
    return mergeDelegateRoutes(route, delegate.config.spec.http ?? []);
  });
  return { config: { ...config, spec: { ...config.spec, http } }, origins };
}
