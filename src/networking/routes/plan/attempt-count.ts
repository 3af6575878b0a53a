/** Removes the request header `x-envoy-attempt-count` if `proxyHeaders.attemptCount` is disabled. */
import type { VirtualHost } from '../../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { RouteConfiguration } from '../../../gen/envoy/config/route/v3/route_pb.ts';
import { memoizeByObject } from '../../../model/collections/memoize-by-object.ts';
import type { ConfigKey } from '../../../model/config/config.ts';
import { proxySettingsOf } from '../../../model/mesh/proxy-settings.ts';
import type { ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import { originsOf, withOrigins } from '../../inputs/message-origin.ts';
import { type PartBlock, sharedBlock } from '../../messages/part-block.ts';
import { Encodable, EnvoyResource, ResourceOfParts } from '../../messages/resource.ts';
import { VirtualHostPart } from './virtual-host-part.ts';

export function includesAttemptCount(shape: ProxyShape, push: PushContext): boolean {
  return proxySettingsOf(shape, push.mesh).proxyHeaders.attemptCount?.disabled !== true;
}

export function withAttemptCount(routes: EnvoyResource[], shape: ProxyShape, push: PushContext): EnvoyResource[] {
  return includesAttemptCount(shape, push) ? routes : routes.map(withoutAttemptCount);
}

const withoutAttemptCount = memoizeByObject((resource: EnvoyResource): EnvoyResource => {
  const dependsOn = (): readonly ConfigKey[] => resource.dependsOn;
  const { name, schema } = resource;
  if (resource instanceof ResourceOfParts) {
    const blocks = (resource.blocks as readonly PartBlock<VirtualHostPart>[]).map(blockWithoutCount);
    return new ResourceOfParts({ name, schema, message: resource.rest, dependsOn }, blocks);
  }
  const configuration = resource.message as RouteConfiguration;
  const message: RouteConfiguration = { ...configuration, virtualHosts: configuration.virtualHosts.map(omitCount) };
  return new EnvoyResource(name, schema, message, dependsOn);
});

/** Configurations with common blocks also share the changed blocks. */
const blockWithoutCount = memoizeByObject(({ fieldNumber, parts }: PartBlock<VirtualHostPart>) =>
  sharedBlock(fieldNumber, parts.map(partWithoutCount)),
);

const partWithoutCount = memoizeByObject(
  ({ name, domains, remainder }: VirtualHostPart) => new VirtualHostPart(name, domains, restWithoutCount(remainder)),
);

const restWithoutCount = memoizeByObject(
  ({ schema, message }: Encodable) => new Encodable(schema, omitCount(message as VirtualHost)),
);

function omitCount(host: VirtualHost): VirtualHost {
  return withOrigins({ ...host, includeRequestAttemptCount: false }, originsOf(host));
}
