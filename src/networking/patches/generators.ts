/** The generators of the types that EnvoyFilters patch: what is made, then patched. */
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { buildClusters as unpatchedClusters } from '../clusters/build.ts';
import { buildWasmPlugins } from '../extensions/build.ts';
import { type Memory, noMemory } from '../inputs/generator-memory.ts';
import { buildListeners as unpatchedListeners } from '../listeners/build.ts';
import type { Resource } from '../messages/resource.ts';
import { withAttemptCount } from '../routes/attempt-count.ts';
import { buildRoutes as unpatchedRoutes } from '../routes/build.ts';
import { patched } from './index.ts';

export function buildClusters(shape: ProxyShape, push: PushContext, memory: Memory = noMemory): Resource[] {
  return patched('CDS', unpatchedClusters(shape, push, memory), shape, push);
}

export function buildListeners(shape: ProxyShape, push: PushContext, memory: Memory = noMemory): Resource[] {
  return patched('LDS', unpatchedListeners(shape, push, memory), shape, push);
}

export function buildRoutes(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  memory: Memory = noMemory,
): Resource[] {
  return patched('RDS', withAttemptCount(unpatchedRoutes(shape, push, names, memory), shape, push), shape, push);
}

/** Configurations of extensions that filters name. */
export function buildExtensions(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  memory: Memory = noMemory,
): Resource[] {
  return patched('ECDS', buildWasmPlugins(shape, push, names, memory), shape, push, names);
}
