/** Reports mesh VirtualServices with the same host: for a client that receives both, one has no effect. */
import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import type { Config } from '../../../model/config/config.ts';
import type { VirtualService } from '../../../model/kinds/virtual-service/virtual-service.ts';
import type { ResolvedVirtualService } from '../../../model/push-context/resolved-rules.ts';
import { type CheckSources, type ConfigCheck, isWrittenConfig } from '../config-warning.ts';

export interface SharedHost {
  readonly host: string;
  readonly olderConfig: Config<VirtualService>;
  readonly newerConfig: Config<VirtualService>;
  /** The VirtualService without effect for clients in the older one's namespace. */
  readonly overridden: 'older' | 'newer';
}

export function* sharedHosts({
  context,
  configs,
}: Pick<CheckSources, 'context' | 'configs'>): Generator<SharedHost | undefined> {
  const oldestByHost = new Map<string, Config<VirtualService>>();
  const visibleFromByHost = new Map<string, ReadonlyMap<string, number>>();
  const placeFrom = (namespace: string, otherConfig: Config<VirtualService>): number | undefined => {
    const services = visibleFromByHost.get(namespace) ?? placesOf(context.virtualServicesFor('mesh', namespace));
    visibleFromByHost.set(namespace, services);
    return services.get(`${otherConfig.namespace}/${otherConfig.name}`);
  };
  for (const newerConfig of configs.VirtualService) {
    yield undefined;
    const { hosts, gateways = ['mesh'] } = newerConfig.spec;
    if (!gateways.includes('mesh')) continue;
    for (const writtenHost of hosts) {
      const host = context.hostNames.qualify(writtenHost, newerConfig.namespace);
      const olderService = oldestByHost.get(host);
      if (olderService === undefined) {
        oldestByHost.set(host, newerConfig);
        continue;
      }
      const ruleIndex = placeFrom(olderService.namespace, newerConfig);
      if (ruleIndex === undefined) continue;
      const isNewerFirst = ruleIndex < (placeFrom(olderService.namespace, olderService) ?? -1);
      yield { host, olderConfig: olderService, newerConfig: newerConfig, overridden: isNewerFirst ? 'older' : 'newer' };
    }
  }
}

/** Namespaces share one list while nothing is private. */
const placesOf = memoizeByObject(
  (services: readonly ResolvedVirtualService[]): ReadonlyMap<string, number> =>
    new Map(services.map(({ config: { namespace, name } }, serviceIndex) => [`${namespace}/${name}`, serviceIndex])),
);

export const checkSharedHosts: ConfigCheck = function* (sources) {
  for (const sharedHost of sharedHosts(sources)) {
    yield undefined;
    if (sharedHost === undefined) continue;
    const { host, olderConfig, newerConfig, overridden } = sharedHost;
    const [config, other] = overridden === 'older' ? [olderConfig, newerConfig] : [newerConfig, olderConfig];
    if (!isWrittenConfig(config) || config === other) continue;
    yield {
      ...{ code: 'HOST_CONFLICT', config, field: `spec.hosts[${hostIndex(config, host, sources)}]` },
      message: `${host} is also a host of VirtualService ${other.namespace}/${other.name}, whose routes apply to clients of namespace ${olderConfig.namespace} instead: merge the two`,
      other: { config: other, field: 'spec.hosts' },
    };
  }
};

function hostIndex({ namespace, spec }: Config<VirtualService>, host: string, { context }: CheckSources): number {
  return spec.hosts.findIndex((writtenHost) => context.hostNames.qualify(writtenHost, namespace) === host);
}
