/** Indexes virtual services by gateway and visibility, with merged delegates. */

import type { Steps } from '../../runtime/turns.ts';
import { changedList, listDiff } from '../collections/list-diff.ts';
import { sameItems } from '../collections/same-items.ts';
import type { Origin } from '../config/config.ts';
import { type Config, type ConfigKey, compareAge, configKeyOf } from '../config/config.ts';
import { coveringKeys, type HostNames, isWildcard } from '../fields/hostname.ts';
import type { HttpRoute, VirtualService } from '../kinds/virtual-service/virtual-service.ts';
import type { MeshConfig } from '../mesh/mesh-config.ts';
import { type ExportRule, exportSet, isExportedTo, isPublic } from '../services/visibility.ts';
import type { HostImports } from './host-imports.ts';
import { mergeDelegateRoutes } from './merge-delegates.ts';
import { resolveVirtualService, shortNamesText } from './resolve-virtual-service.ts';
import type { ResolvedVirtualService } from './resolved-rules.ts';
import { precedenceOrderFor } from './virtual-service-order.ts';

type Source = Config<VirtualService>;

interface ExportedVirtualService {
  readonly config: Source;
  readonly exportTo: ReadonlySet<string>;
  /** Absent for a delegate, which has no hosts. */
  readonly virtualService?: ResolvedVirtualService;
}

interface Bucket {
  readonly items: readonly ExportedVirtualService[];
  readonly publicVirtualServices: readonly ResolvedVirtualService[];
  readonly namedHosts: ReadonlySet<string>;
  readonly visibleByNamespace: Map<string, readonly ResolvedVirtualService[]>;
  readonly previousVisible: ReadonlyMap<string, readonly ResolvedVirtualService[]>;
  byNamespace?: ReadonlyMap<string, readonly ExportedVirtualService[]>;
  byHost?: ReadonlyMap<string, readonly ExportedVirtualService[]>;
}

interface Parts {
  readonly sources: readonly Source[];
  readonly exportedBySource: ReadonlyMap<Source, ExportedVirtualService>;
  readonly delegates: ReadonlyMap<string, ExportedVirtualService>;
  readonly delegatingSources: ReadonlySet<Source>;
  readonly bucketsByGateway: ReadonlyMap<string, Bucket>;
  readonly shortNames: ReadonlyMap<Source, string>;
  readonly renamedConfigKeys: readonly ConfigKey[];
}

export class VirtualServiceIndex {
  private readonly sources: readonly Source[];
  private readonly exportedBySource: ReadonlyMap<Source, ExportedVirtualService>;
  private readonly delegates: ReadonlyMap<string, ExportedVirtualService>;
  private readonly delegatingSources: ReadonlySet<Source>;
  private readonly bucketsByGateway: ReadonlyMap<string, Bucket>;
  private servicesByOrigin: ReadonlyMap<string, readonly ResolvedVirtualService[]> | undefined;
  /** Short names in objects whose resolution depends on services. */
  private readonly shortNames: ReadonlyMap<Source, string>;
  /** Objects of the previous index whose short names resolve to other hosts. */
  readonly renamedConfigKeys: readonly ConfigKey[];

  private constructor(indexParts: Parts) {
    this.sources = indexParts.sources;
    this.exportedBySource = indexParts.exportedBySource;
    this.delegates = indexParts.delegates;
    this.delegatingSources = indexParts.delegatingSources;
    this.bucketsByGateway = indexParts.bucketsByGateway;
    this.shortNames = indexParts.shortNames;
    this.renamedConfigKeys = indexParts.renamedConfigKeys;
  }

  /**
   * @param configs oldest first
   * @param previous an index with the same settings and possibly other services
   */
  static *buildInSteps(
    configs: readonly Source[],
    hostNames: HostNames,
    mesh: ExportRule & Pick<MeshConfig, 'defaultVirtualServiceExportTo'>,
    previous?: VirtualServiceIndex,
  ): Steps<VirtualServiceIndex> {
    const sourceDiff = listDiff(previous?.sources ?? [], configs);
    const removedSources = new Set(sourceDiff.removed);
    const renamedSources = (previous?.withOtherNames(hostNames) ?? []).filter((source) => !removedSources.has(source));
    const diff = {
      removed: [...sourceDiff.removed, ...renamedSources],
      added: [...sourceDiff.added, ...renamedSources],
    };
    const shortNames = yield* changedNames(previous?.shortNames, diff, hostNames);
    const exportedBySource = new Map(previous?.exportedBySource);
    const delegates = new Map(previous?.delegates);
    const delegatingSources = new Set(previous?.delegatingSources);
    const removedExports = new Set<ExportedVirtualService>();
    const changedDelegates = new Set<string>();
    for (const source of diff.removed) {
      const previousExported = exportedBySource.get(source)!;
      removedExports.add(previousExported);
      exportedBySource.delete(source);
      delegatingSources.delete(source);
      if (previousExported.virtualService === undefined) changedDelegates.add(idOf(previousExported.config));
    }
    for (const id of changedDelegates) delegates.delete(id);
    const withHosts: Source[] = [];
    for (const source of diff.added) {
      const exportTo = exportSet(source.namespace, source.spec.exportTo, mesh.defaultVirtualServiceExportTo, mesh);
      const exportedService: ExportedVirtualService = { config: resolveVirtualService(source, hostNames), exportTo };
      exportedBySource.set(source, exportedService);
      yield;
      if (exportedService.config.spec.hosts.length > 0) {
        withHosts.push(source);
        continue;
      }
      delegates.set(idOf(exportedService.config), exportedService);
      changedDelegates.add(idOf(exportedService.config));
    }
    // Unchanged objects that delegate to a changed object are merged again.
    const recomputedSources = [...delegatingSources].filter((source) => {
      return exportedBySource.get(source)!.virtualService!.origins.some((key) => changedDelegates.has(idOf(key)));
    });
    const addedExports: ExportedVirtualService[] = [];
    for (const source of [...withHosts, ...recomputedSources]) {
      const { config, exportTo, virtualService: previousVirtualService } = exportedBySource.get(source)!;
      if (previousVirtualService !== undefined) removedExports.add(exportedBySource.get(source)!);
      const virtualService = withDelegates(config, exportTo, delegates);
      const exportedService = { config, exportTo, virtualService };
      exportedBySource.set(source, exportedService);
      if (virtualService.config !== config) delegatingSources.add(source);
      addedExports.push(exportedService);
      yield;
    }
    const bucketsByGateway = yield* changedBuckets(
      previous?.bucketsByGateway ?? new Map(),
      removedExports,
      addedExports,
    );
    const indexFields = { exportedBySource, delegates, delegatingSources, bucketsByGateway, shortNames };
    return new VirtualServiceIndex({
      sources: configs,
      renamedConfigKeys: renamedSources.map(configKeyOf),
      ...indexFields,
    });
  }

  /** In precedence order for the namespace. Equal results share one list, which keeps its identity while its items are unchanged. */
  servicesFor(gateway: string, namespace: string): readonly ResolvedVirtualService[] {
    const bucket = this.bucketsByGateway.get(gateway);
    if (bucket === undefined) return noServices;
    if (!bucket.namedHosts.has(namespace)) return bucket.publicVirtualServices;
    let visibleServices = bucket.visibleByNamespace.get(namespace);
    if (visibleServices === undefined) {
      const currentServices = virtualServicesFor(namespace, bucket.items);
      const previousList = bucket.previousVisible.get(namespace);
      visibleServices =
        previousList !== undefined && sameItems(previousList, currentServices) ? previousList : currentServices;
      bucket.visibleByNamespace.set(namespace, visibleServices);
    }
    return visibleServices;
  }

  /** Returns the virtual services of {@link servicesFor} that overlap the imports, without visiting others. */
  importedServices(gateway: string, namespace: string, imports: HostImports): readonly ResolvedVirtualService[] {
    const bucket = this.bucketsByGateway.get(gateway);
    if (bucket === undefined) return noServices;
    const candidates = new Set<ExportedVirtualService>();
    for (const [sourceNamespace, hosts] of imports.hosts) {
      for (const item of candidatesOf(bucket, sourceNamespace, hosts)) candidates.add(item);
    }
    const overlappingExports = [...candidates].filter(({ config }) =>
      config.spec.hosts.some((host) => imports.mayAffect(config.namespace, host)),
    );
    return virtualServicesFor(namespace, overlappingExports);
  }

  effectiveServices({ namespace, name }: ConfigKey): readonly ResolvedVirtualService[] {
    this.servicesByOrigin ??= groupByOrigin(this.exportedBySource.values());
    return this.servicesByOrigin.get(idOf({ namespace, name })) ?? noServices;
  }

  isCurrent(hostNames: HostNames): boolean {
    return this.withOtherNames(hostNames).length === 0;
  }

  private withOtherNames(hostNames: HostNames): Source[] {
    return [...this.shortNames]
      .filter(([configWithShortNames, text]) => shortNamesText(configWithShortNames, hostNames) !== text)
      .map(([configWithShortNames]) => configWithShortNames);
  }
}

const noNames: ReadonlyMap<Source, string> = new Map();

function* changedNames(
  previous: ReadonlyMap<Source, string> = noNames,
  { removed, added }: { readonly removed: readonly Source[]; readonly added: readonly Source[] },
  hostNames: HostNames,
): Steps<ReadonlyMap<Source, string>> {
  if (hostNames.isFixed || removed.length + added.length === 0) return previous;
  const names = new Map(previous);
  for (const source of removed) names.delete(source);
  for (const source of added) {
    const text = shortNamesText(source, hostNames);
    if (text !== '') names.set(source, text);
    yield;
  }
  return names;
}

function* changedBuckets(
  previous: ReadonlyMap<string, Bucket>,
  removedExports: ReadonlySet<ExportedVirtualService>,
  addedExports: readonly ExportedVirtualService[],
): Steps<Map<string, Bucket>> {
  const buckets = new Map(previous);
  const addedByGateway = groupByGateway(addedExports);
  yield;
  for (const gateway of new Set([...groupByGateway(removedExports).keys(), ...addedByGateway.keys()])) {
    yield;
    const previousItems = previous.get(gateway)?.items ?? [];
    const boundItems = addedByGateway.get(gateway) ?? [];
    const items = changedList(previousItems, removedExports, boundItems, compareConfigAge);
    if (items.length === 0) buckets.delete(gateway);
    else if (items !== previousItems) {
      buckets.set(gateway, bucketOf(items, previous.get(gateway)));
    }
  }
  return buckets;
}

function bucketOf(items: readonly ExportedVirtualService[], previous: Bucket | undefined): Bucket {
  const namedHosts = new Set<string>();
  const publicVirtualServices: ResolvedVirtualService[] = [];
  for (const { config, exportTo, virtualService } of items) {
    if (isPublic(exportTo)) publicVirtualServices.push(virtualService!);
    else for (const namespace of exportTo) namedHosts.add(namespace === '.' ? config.namespace : namespace);
  }
  const isUnchanged = previous !== undefined && sameItems(previous.publicVirtualServices, publicVirtualServices);
  return {
    items,
    publicVirtualServices: isUnchanged ? previous.publicVirtualServices : publicVirtualServices,
    namedHosts,
    visibleByNamespace: new Map(),
    previousVisible: previous?.visibleByNamespace ?? new Map(),
  };
}

/** A superset of the objects that overlap hosts imported from a namespace. */
function candidatesOf(
  bucket: Bucket,
  sourceNamespace: string,
  hosts: ReadonlySet<string>,
): Iterable<ExportedVirtualService> {
  if (sourceNamespace !== '*') {
    bucket.byNamespace ??= Map.groupBy(bucket.items, ({ config }) => config.namespace);
    return bucket.byNamespace.get(sourceNamespace) ?? [];
  }
  if ([...hosts].some(isWildcard)) return bucket.items;
  bucket.byHost ??= itemsByHost(bucket.items);
  const { byHost } = bucket;
  return [...hosts].flatMap((host) =>
    [...coveringKeys(host, byHost)].flatMap((coveringKey) => byHost.get(coveringKey)!),
  );
}

function itemsByHost(items: readonly ExportedVirtualService[]): ReadonlyMap<string, readonly ExportedVirtualService[]> {
  const exportsByHost = new Map<string, ExportedVirtualService[]>();
  for (const item of items) {
    for (const host of item.config.spec.hosts) {
      const hostItems = exportsByHost.get(host);
      if (hostItems === undefined) exportsByHost.set(host, [item]);
      else hostItems.push(item);
    }
  }
  return exportsByHost;
}

function groupByOrigin(
  items: Iterable<ExportedVirtualService>,
): ReadonlyMap<string, readonly ResolvedVirtualService[]> {
  const servicesByName = new Map<string, ResolvedVirtualService[]>();
  for (const { virtualService } of items) {
    for (const origin of virtualService?.origins ?? []) {
      const originServices = servicesByName.get(idOf(origin));
      if (originServices === undefined) servicesByName.set(idOf(origin), [virtualService!]);
      else originServices.push(virtualService!);
    }
  }
  return servicesByName;
}

function isVisible({ config, exportTo }: ExportedVirtualService, namespace: string): boolean {
  return isExportedTo(exportTo, config.namespace, namespace);
}

const noServices: readonly ResolvedVirtualService[] = [];

function virtualServicesFor(
  namespace: string,
  items: readonly ExportedVirtualService[],
): readonly ResolvedVirtualService[] {
  const visibleItems = items.filter((item) => isVisible(item, namespace));
  return visibleItems.map(({ virtualService }) => virtualService!).sort(precedenceOrderFor(namespace));
}

function groupByGateway(items: Iterable<ExportedVirtualService>): Map<string, ExportedVirtualService[]> {
  const groups = new Map<string, ExportedVirtualService[]>();
  for (const item of items) {
    for (const gateway of new Set(item.config.spec.gateways)) {
      const group = groups.get(gateway);
      if (group === undefined) groups.set(gateway, [item]);
      else group.push(item);
    }
  }
  return groups;
}

function compareConfigAge(a: ExportedVirtualService, b: ExportedVirtualService): number {
  return compareAge(a.config, b.config);
}

function idOf({ namespace, name }: Pick<ConfigKey, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`;
}

/** A delegate that does not exist, or is not exported to the root's namespace, contributes no routes. */
function withDelegates(
  config: Source,
  exportTo: ReadonlySet<string>,
  delegates: ReadonlyMap<string, ExportedVirtualService>,
): ResolvedVirtualService {
  const rootKey = configKeyOf(config);
  if (!config.spec.http?.some((route) => route.delegate !== undefined)) return { config, exportTo, origins: [rootKey] };
  const origins: ConfigKey[] = [rootKey];
  const http: HttpRoute[] = [];
  const httpOrigins: (readonly Origin[])[] = [];
  for (const [rootIndex, root] of config.spec.http.entries()) {
    const ruleOrigin: Origin = { key: rootKey, path: ['spec', 'http', rootIndex] };
    if (root.delegate === undefined) {
      http.push(root);
      httpOrigins.push([ruleOrigin]);
      continue;
    }
    const { name, namespace = config.namespace } = root.delegate;
    const key = { kind: 'VirtualService', namespace, name };
    // A missing delegate is also an origin, because its creation changes this object.
    origins.push(key);
    const delegate = delegates.get(`${namespace}/${name}`);
    if (delegate === undefined || !isExportedTo(delegate.exportTo, namespace, config.namespace)) continue;
    for (const { route, index } of mergeDelegateRoutes(root, delegate.config.spec.http ?? [])) {
      http.push(route);
      httpOrigins.push([{ key, path: ['spec', 'http', index] }, ruleOrigin]);
    }
  }
  return { config: { ...config, spec: { ...config.spec, http } }, exportTo, origins, httpOrigins };
}
