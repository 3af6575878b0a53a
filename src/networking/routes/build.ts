import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { runToEnd } from '../../runtime/turns.ts';
import { mergeGateways } from '../gateway/merge-gateways.ts';
import { type Memory, noMemory } from '../inputs/generator-memory.ts';
import type { EnvoyResource, PartToEncode } from '../messages/resource.ts';
import { proxyReachOf } from '../traffic/reach.ts';
import { buildingGatewayRoutes } from './gateway.ts';
import { precomputeSidecarRoutes, sidecarRoutes } from './sidecar.ts';

/** Returns a configuration without virtual hosts if no listener of the proxy uses the name. */
export function buildRoutes(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  cache: Memory = noMemory,
): EnvoyResource[] {
  return runToEnd(buildingRoutes(shape, push, names, cache));
}

export function* buildingRoutes(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  cache: Memory,
): Generator<undefined, EnvoyResource[]> {
  const resources: EnvoyResource[] = [];
  if (shape.type === 'sidecar') {
    for (const name of names) {
      resources.push(sidecarRoutes(name, shape, push, cache));
      yield undefined;
    }
    return resources;
  }
  const mergedGateways = mergeGateways(shape, push);
  const reach = proxyReachOf(shape, push);
  for (const name of names) resources.push(yield* buildingGatewayRoutes(name, mergedGateways, shape, push, reach));
  return resources;
}

/** Precomputes the virtual hosts of a sidecar one by one. Does nothing for gateways. */
export function* precomputeRoutes(
  shape: ProxyShape,
  push: PushContext,
  cache: Memory,
  names: readonly string[],
): Generator<PartToEncode | undefined> {
  if (shape.type === 'sidecar') yield* precomputeSidecarRoutes(shape, push, cache, names);
}
