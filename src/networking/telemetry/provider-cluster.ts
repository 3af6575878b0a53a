import type { ProviderAddress } from '../../model/mesh/extension-providers.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import type { Service } from '../../model/services/service.ts';
import { outboundCluster } from '../clusters/outbound.ts';
import { providerService } from '../traffic/provider-service.ts';
import { proxyReachOf } from '../traffic/reach.ts';
import { outboundClusterName } from '../traffic/resource-names.ts';

export interface ProviderCluster {
  readonly cluster: string;
  readonly service: Service;
}

/**
 * Returns `undefined` if the proxy lacks the cluster. The provider is then omitted, because Envoy rejects listeners that report to an unknown
 * cluster.
 */
export function providerCluster(
  { service: name, port: number }: ProviderAddress,
  shape: ProxyShape,
  push: PushContext,
): ProviderCluster | undefined {
  const { host, isProvidedBy } = providerService(name, shape.configNamespace, push);
  const reach = proxyReachOf(shape, push);
  for (const service of reach.services) {
    if (service.hostname !== host || !isProvidedBy(service)) continue;
    const port = service.ports.find((candidate) => candidate.number === number && candidate.protocol !== 'UDP');
    if (port === undefined) continue;
    const rule = reach.destinationRuleFor(service);
    if (outboundCluster({ service, port, subset: '', rule }, shape, push) === undefined) continue;
    return { cluster: outboundClusterName(number, '', host), service };
  }
  return undefined;
}
