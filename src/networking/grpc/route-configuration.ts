import { create } from '@bufbuild/protobuf';
import type { Route } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import { type RouteConfiguration, RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { sidecarRoutes } from '../routes/sidecar.ts';
import { domainsOf } from '../routes/translate/domains.ts';
import { proxyReachOf } from '../traffic/reach.ts';
import { parseOutboundClusterName, sniffedRouteName, virtualHostName } from '../traffic/resource-names.ts';
import type { WithLimitations } from './limitation.ts';
import { grpcRoute } from './route.ts';

/** @param name cluster name of the port, without subset; for other names and invisible services, the result is empty */
export function grpcRouteConfiguration(
  name: string,
  shape: ProxyShape,
  push: PushContext,
): WithLimitations<RouteConfiguration | undefined> {
  const clusterParts = parseOutboundClusterName(name);
  if (clusterParts === undefined || clusterParts.sni || clusterParts.subset !== '') return emptyResult;
  const { host, port } = clusterParts;
  const service = proxyReachOf(shape, push).serviceByHostname(host);
  if (service?.hostname !== host || !service.ports.some(({ number }) => number === port)) return emptyResult;
  const routes = routesOf(host, port, shape, push).map((route) => grpcRoute(route, name));
  const translatedRoutes = routes.flatMap(({ message }) => message ?? []);
  const message = create(RouteConfigurationSchema, {
    name,
    virtualHosts: [
      {
        name: virtualHostName(host, port),
        // gRPC lacks `ignore_port_in_host_matching`, so each domain is also listed with the port.
        domains: [...domainsOf({ hostname: host, addresses: [] }, { proxyDomain: shape.dnsDomain, port })],
        routes: translatedRoutes,
      },
    ],
  });
  return { message, limitations: routes.flatMap(({ limitations }) => limitations) };
}

const emptyResult: WithLimitations<undefined> = { message: undefined, limitations: [] };

function routesOf(host: string, port: number, shape: ProxyShape, push: PushContext): readonly Route[] {
  const configuration = sidecarRoutes(sniffedRouteName(host, port), shape, push).message as RouteConfiguration;
  return configuration.virtualHosts.find(({ name }) => name === virtualHostName(host, port))?.routes ?? [];
}
