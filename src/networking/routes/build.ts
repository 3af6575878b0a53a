/** RDS: the route configurations that a proxy asks for by name (spec/discovery.md §7.3, §8.5, §8.7). */
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { mergeGateways } from '../gateway/merge-gateways.ts';
import { type Memory, noMemory } from '../inputs/generator-memory.ts';
import type { Encodable, Resource } from '../messages/resource.ts';
import { reachOf } from '../traffic/reach.ts';
import { gatewayRoutes } from './gateway.ts';
import { sidecarRoutes, sidecarRoutesAhead } from './sidecar.ts';

/** One configuration for each name; for a name that means nothing to the proxy, one without virtual hosts. */
export function buildRoutes(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  memory: Memory = noMemory,
): Resource[] {
  if (shape.type === 'sidecar') return names.map((name) => sidecarRoutes(name, shape, push, memory));
  const merged = mergeGateways(shape, push);
  const reach = reachOf(shape, push);
  return names.map((name) => gatewayRoutes(name, merged, shape, push, reach));
}

/** What takes long of {@link buildRoutes}, a virtual host at a time; of a gateway nothing. */
export function* buildRoutesAhead(
  shape: ProxyShape,
  push: PushContext,
  memory: Memory,
  names: readonly string[],
): Generator<Encodable | undefined> {
  if (shape.type === 'sidecar') yield* sidecarRoutesAhead(shape, push, memory, names);
}
