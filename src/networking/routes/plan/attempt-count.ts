/** Whether servers are told how often a request was tried: they are, unless `proxyHeaders.attemptCount` says no. */
import type { VirtualHost } from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { RouteConfiguration } from '../../../gen/envoy/config/route/v3/route_pb.ts';
import { onceFor } from '../../../model/collections/once-for.ts';
import type { ConfigKey } from '../../../model/config/config.ts';
import { proxySettingsOf } from '../../../model/mesh/proxy-settings.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import { originsOf, withOrigins } from '../../inputs/message-origin.ts';
import { type PartBlock, sharedBlock } from '../../messages/part-block.ts';
import { Encodable, Resource, ResourceOfParts } from '../../messages/resource.ts';
import { VirtualHostPart } from './virtual-host-part.ts';

export function countsAttempts(shape: ProxyShape, push: PushContext): boolean {
  return proxySettingsOf(shape, push.mesh).proxyHeaders.attemptCount?.disabled !== true;
}

/** The very same routes for nearly all proxies; for the others a copy of each, made once. */
export function withAttemptCount(routes: Resource[], shape: ProxyShape, push: PushContext): Resource[] {
  return countsAttempts(shape, push) ? routes : routes.map(silenced);
}

const silenced = onceFor((resource: Resource): Resource => {
  const dependsOn = (): readonly ConfigKey[] => resource.dependsOn;
  const { name, schema } = resource;
  if (resource instanceof ResourceOfParts) {
    const blocks = (resource.blocks as readonly PartBlock<VirtualHostPart>[]).map(silencedBlock);
    return new ResourceOfParts({ name, schema, message: resource.rest, dependsOn }, blocks);
  }
  const configuration = resource.message as RouteConfiguration;
  const message: RouteConfiguration = { ...configuration, virtualHosts: configuration.virtualHosts.map(withoutCount) };
  return new Resource(name, schema, message, dependsOn);
});

/** Configurations that have the same virtual hosts have the same ones without it. */
const silencedBlock = onceFor(({ fieldNumber, parts }: PartBlock<VirtualHostPart>) =>
  sharedBlock(fieldNumber, parts.map(silencedPart)),
);

const silencedPart = onceFor(
  ({ name, domains, rest }: VirtualHostPart) => new VirtualHostPart(name, domains, silencedRest(rest)),
);

const silencedRest = onceFor(
  ({ schema, message }: Encodable) => new Encodable(schema, withoutCount(message as VirtualHost)),
);

function withoutCount(host: VirtualHost): VirtualHost {
  return withOrigins({ ...host, includeRequestAttemptCount: false }, originsOf(host));
}
