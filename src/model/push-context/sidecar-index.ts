import type { Config } from '../config/config.ts';
import type { Sidecar } from '../kinds/workloads/sidecar.ts';
import type { Proxy } from '../node/proxy.ts';
import { SelectingList } from '../services/label-match.ts';
import { buildSidecarScope, type ScopeSources } from './build-sidecar-scope.ts';
import type { SidecarScope } from './sidecar-scope.ts';

interface NamespaceSidecars {
  readonly selectingSidecars: SelectingList<Config<Sidecar>>;
  readonly defaultSidecar: Config<Sidecar> | undefined;
}

export class SidecarIndex {
  readonly allSidecars: readonly Config<Sidecar>[];
  private readonly sidecarsByNamespace: ReadonlyMap<string, NamespaceSidecars>;
  private readonly rootNamespace: string;

  constructor(sidecars: readonly Config<Sidecar>[], rootNamespace: string) {
    this.allSidecars = sidecars;
    const groups = Map.groupBy(sidecars, (sidecar) => sidecar.namespace);
    this.sidecarsByNamespace = new Map(
      [...groups].map(([namespace, namespaceSidecars]) => [namespace, sidecarsOfNamespace(namespaceSidecars)]),
    );
    this.rootNamespace = rootNamespace;
  }

  /**
   * Returns the oldest Sidecar that selects the workload, else the namespace's default, else the root namespace's default. Returns `undefined` for
   * gateways.
   */
  sidecarFor(proxy: Pick<Proxy, 'type' | 'configNamespace' | 'labels'>): Config<Sidecar> | undefined {
    if (proxy.type !== 'sidecar') return undefined;
    const candidates = this.sidecarsByNamespace.get(proxy.configNamespace);
    return (
      candidates?.selectingSidecars.itemsSelecting(proxy.labels)[0] ??
      candidates?.defaultSidecar ??
      this.sidecarsByNamespace.get(this.rootNamespace)?.defaultSidecar
    );
  }
}

function sidecarsOfNamespace(sidecars: readonly Config<Sidecar>[]): NamespaceSidecars {
  const selectingSidecars = sidecars.filter(({ spec }) => hasSelector(spec));
  return {
    selectingSidecars: new SelectingList(selectingSidecars, ({ spec }) => spec.workloadSelector?.labels),
    defaultSidecar: sidecars.find(({ spec }) => !hasSelector(spec)),
  };
}

function hasSelector(spec: Sidecar): boolean {
  return spec.workloadSelector !== undefined && Object.keys(spec.workloadSelector.labels).length > 0;
}

/** Scopes of one context, each built on first use and shared by all its proxies. */
export class SidecarScopes {
  private readonly sources: ScopeSources;
  private readonly sidecars: SidecarIndex;
  private readonly scopes = new Map<string, SidecarScope>();
  private readonly previousScopes: ReadonlyMap<string, SidecarScope>;
  private readonly sameServices: boolean;

  constructor(sources: ScopeSources, sidecars: SidecarIndex, previous?: SidecarScopes) {
    this.sources = sources;
    this.sidecars = sidecars;
    this.previousScopes = previous?.scopes ?? new Map();
    this.sameServices = previous?.sources.services === sources.services;
  }

  scopeFor(proxy: Pick<Proxy, 'type' | 'configNamespace' | 'labels'>): SidecarScope {
    const sidecar = this.sidecars.sidecarFor(proxy);
    const id = `${proxy.configNamespace} ${sidecar === undefined ? '' : `${sidecar.namespace}/${sidecar.name}`}`;
    let scope = this.scopes.get(id);
    if (scope === undefined) {
      scope = buildSidecarScope(
        this.sources,
        proxy.configNamespace,
        sidecar,
        this.previousScopes.get(id),
        this.sameServices,
      );
      this.scopes.set(id, scope);
    }
    return scope;
  }
}
