/** Whether servers are told how often a request was tried: they are, unless `proxyHeaders.attemptCount` says no. */
import type { VirtualHost } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import { type RouteConfiguration, RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { proxySettingsOf } from '../../model/mesh/proxy-settings.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { originsOf, withOrigins } from '../inputs/message-origin.ts';
import { namedResource, type Resource } from '../messages/resource.ts';

export function countsAttempts(shape: ProxyShape, push: PushContext): boolean {
  return proxySettingsOf(shape, push.mesh).proxyHeaders.attemptCount?.disabled !== true;
}

const silenced = new WeakMap<Resource, Resource>();

/** The very same routes for nearly all proxies; for the others a copy of each, made once. */
export function withAttemptCount(routes: Resource[], shape: ProxyShape, push: PushContext): Resource[] {
  if (countsAttempts(shape, push)) return routes;
  return routes.map((resource) => {
    let copy = silenced.get(resource);
    if (copy === undefined) {
      copy = withoutCount(resource);
      silenced.set(resource, copy);
    }
    return copy;
  });
}

function withoutCount({ message, dependsOn }: Resource): Resource {
  const configuration = message as RouteConfiguration;
  const virtualHosts = configuration.virtualHosts.map((host): VirtualHost => {
    return withOrigins({ ...host, includeRequestAttemptCount: false }, originsOf(host));
  });
  const copy: RouteConfiguration = { ...configuration, virtualHosts };
  return namedResource(RouteConfigurationSchema, copy, dependsOn);
}
