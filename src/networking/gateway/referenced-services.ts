/** Limits the clusters of a gateway to referenced services (PILOT_FILTER_GATEWAY_CLUSTER_CONFIG). */
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { destinationHosts } from '../../model/push-context/resolve-virtual-service.ts';
import type { Service } from '../../model/services/service.ts';
import { aliasChain } from '../../model/services/service-alias.ts';
import { mergeGateways } from './merge-gateways.ts';
import { gatewayName } from './placed-server.ts';

/**
 * Services to which VirtualServices of the gateway or extension providers of the mesh refer; with AUTO_PASSTHROUGH all services, because the SNI may
 * name any.
 */
export function referencedServices(
  services: readonly Service[],
  shape: ProxyShape,
  push: PushContext,
): readonly Service[] {
  if (!push.features.onlyReferencedClusters || mergeGateways(shape, push).hasAutoPassthrough) return services;
  const serviceByHost = new Map(services.map((service) => [service.hostname, service]));
  const routedHosts = push
    .gatewaysFor(shape)
    .flatMap((gateway) => push.virtualServicesFor(gatewayName(gateway), shape.configNamespace))
    .flatMap(({ config }) => [...destinationHosts(config.spec)]);
  const referencedServiceSet = new Set(
    [...routedHosts, ...providerHosts(push)].flatMap((host) => {
      const referencedService = serviceByHost.get(host);
      return referencedService === undefined
        ? []
        : aliasChain(referencedService, (aliasHost) => serviceByHost.get(aliasHost));
    }),
  );
  return services.filter((service) => referencedServiceSet.has(service));
}

function providerHosts({ mesh }: PushContext): readonly string[] {
  return mesh.extensionProviders.flatMap((provider) =>
    Object.values(provider).flatMap((settings: unknown) => {
      const { service } = (typeof settings === 'object' && settings !== null ? settings : {}) as { service?: unknown };
      return typeof service === 'string' ? [service.slice(service.indexOf('/') + 1).toLowerCase()] : [];
    }),
  );
}
