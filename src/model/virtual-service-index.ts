/** Virtual services by gateway and by who sees them, delegates merged in (spec/discovery.md §6.3). */
import { type Config, type ConfigKey, configKeyOf } from './config.ts';
import type { HttpRoute, VirtualService } from './kinds/virtual-service.ts';
import { mergeDelegateRoutes } from './merge-delegates.ts';
import { resolveVirtualService } from './resolve-virtual-service.ts';
import type { ResolvedVirtualService } from './resolved-rules.ts';
import { exportSet, isExportedTo } from './visibility.ts';

export class VirtualServiceIndex {
  private readonly byGateway: ReadonlyMap<string, readonly Exported[]>;
  private readonly answers = new Map<string, readonly ResolvedVirtualService[]>();

  /** @param configs oldest first */
  constructor(configs: readonly Config<VirtualService>[], domain: string, defaultExportTo: readonly string[]) {
    const all = configs.map((config) => ({
      config: resolveVirtualService(config, domain),
      exportTo: exportSet(config.spec.exportTo, defaultExportTo),
    }));
    const delegates = new Map(
      all
        .filter(({ config }) => config.spec.hosts.length === 0)
        .map((one) => [`${one.config.namespace}/${one.config.name}`, one]),
    );
    const byGateway = new Map<string, Exported[]>();
    for (const { config, exportTo } of all) {
      if (config.spec.hosts.length === 0) continue;
      const exported = { exportTo, virtualService: withDelegates(config, delegates) };
      for (const gateway of new Set(config.spec.gateways)) {
        const bucket = byGateway.get(gateway);
        if (bucket === undefined) byGateway.set(gateway, [exported]);
        else bucket.push(exported);
      }
    }
    this.byGateway = byGateway;
  }

  /** Oldest first. */
  for(gateway: string, namespace: string): readonly ResolvedVirtualService[] {
    const id = `${gateway} ${namespace}`;
    let answer = this.answers.get(id);
    if (answer === undefined) {
      answer = (this.byGateway.get(gateway) ?? [])
        .filter(({ exportTo, virtualService }) => isExportedTo(exportTo, virtualService.config.namespace, namespace))
        .map(({ virtualService }) => virtualService);
      this.answers.set(id, answer);
    }
    return answer;
  }
}

interface Exported {
  readonly exportTo: ReadonlySet<string>;
  readonly virtualService: ResolvedVirtualService;
}

interface Delegate {
  readonly config: Config<VirtualService>;
  readonly exportTo: ReadonlySet<string>;
}

/** A delegate that is not there, or not exported to the root's namespace, gives no routes. */
function withDelegates(
  config: Config<VirtualService>,
  delegates: ReadonlyMap<string, Delegate>,
): ResolvedVirtualService {
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
