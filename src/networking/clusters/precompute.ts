import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { isAlias } from '../../model/services/service-alias.ts';
import { referencedServices } from '../gateway/referenced-services.ts';
import type { Memory } from '../inputs/generator-memory.ts';
import type { EnvoyResource } from '../messages/resource.ts';
import { proxyReachOf } from '../traffic/reach.ts';
import { sharedOutboundClusters } from './shared-outbound.ts';

/** Building all clusters in one step would take too long. */
export function* precomputeClusters(
  shape: ProxyShape,
  push: PushContext,
  cache: Memory,
): Generator<EnvoyResource | undefined> {
  const reach = proxyReachOf(shape, push);
  const services = shape.type === 'router' ? referencedServices(reach.services, shape, push) : reach.services;
  for (const service of services) {
    if (isAlias(service)) continue;
    yield* sharedOutboundClusters(service, reach.destinationRuleFor(service), shape, push, cache);
    yield undefined;
  }
}
