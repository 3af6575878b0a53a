import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import {
  buildingClusters as buildingUnpatchedClusters,
  buildClusters as unpatchedClusters,
  buildSidecarClusters as unpatchedSidecarClusters,
} from '../clusters/build.ts';
import { precomputeClusters as unpatchedClustersAhead } from '../clusters/precompute.ts';
import { buildWasmPlugins } from '../extensions/build.ts';
import { type Memory, noMemory } from '../inputs/generator-memory.ts';
import {
  buildListenersInSteps as buildingUnpatchedListeners,
  buildListeners as unpatchedListeners,
} from '../listeners/build.ts';
import type { EnvoyResource, PartToEncode } from '../messages/resource.ts';
import { buildingRoutes as buildingUnpatchedRoutes, buildRoutes as unpatchedRoutes } from '../routes/build.ts';
import { withAttemptCount } from '../routes/plan/attempt-count.ts';
import { routesInPieces } from '../routes/plan/routes-in-pieces.ts';
import { addedClusterNames, changedClusters } from './clusters.ts';
import { applyEnvoyFilters } from './index.ts';
import { haveSamePatches, patchSetOf } from './patch-set.ts';

export interface DifferingClusters {
  readonly resources: readonly EnvoyResource[];
  /** Clusters that only the common shape has. */
  readonly removedNames: readonly string[];
}

export function buildClusters(shape: ProxyShape, push: PushContext, cache: Memory = noMemory): EnvoyResource[] {
  return applyEnvoyFilters('CDS', unpatchedClusters(shape, push, cache), shape, push);
}

export function* buildingClusters(
  shape: ProxyShape,
  push: PushContext,
  cache: Memory,
): Generator<undefined, EnvoyResource[]> {
  return applyEnvoyFilters('CDS', yield* buildingUnpatchedClusters(shape, push, cache), shape, push);
}

/** Patching thousands of clusters takes longer than building them. */
export function* precomputeClusters(
  shape: ProxyShape,
  push: PushContext,
  cache: Memory,
): Generator<EnvoyResource | undefined> {
  const patches = patchSetOf(shape, push);
  for (const cluster of unpatchedClustersAhead(shape, push, cache)) {
    if (cluster === undefined) yield undefined;
    else yield* changedClusters([cluster], patches, shape, push);
  }
}

/**
 * Patches the results of {@link unpatchedSidecarClusters}. Returns `undefined` if a cluster that a patch adds may have the name of another cluster,
 * which only the full list shows.
 */
export function differingClusters(
  shape: ProxyShape,
  commonShape: ProxyShape,
  push: PushContext,
  hosts: ReadonlySet<string>,
  cache: Memory = noMemory,
): DifferingClusters | undefined {
  const [patches, commonPatches] = [patchSetOf(shape, push), patchSetOf(commonShape, push)];
  if (!haveSamePatches(patches, commonPatches, 'CLUSTER')) return undefined;
  const clusters = changedClusters(unpatchedSidecarClusters(shape, push, hosts, cache), patches, shape, push);
  const commonClusters = changedClusters(
    unpatchedSidecarClusters(commonShape, push, hosts, cache),
    commonPatches,
    commonShape,
    push,
  );
  const names = new Set(clusters.map(({ name }) => name));
  const removedNames = commonClusters.map(({ name }) => name).filter((name) => !names.has(name));
  const isNameAffected = addedClusterNames(patches).some((name) => names.has(name) || removedNames.includes(name));
  return isNameAffected ? undefined : { resources: clusters, removedNames };
}

export function buildListeners(shape: ProxyShape, push: PushContext, cache: Memory = noMemory): EnvoyResource[] {
  return applyEnvoyFilters('LDS', unpatchedListeners(shape, push, cache), shape, push);
}

export function* buildingListeners(
  shape: ProxyShape,
  push: PushContext,
  cache: Memory,
): Generator<undefined, EnvoyResource[]> {
  return applyEnvoyFilters('LDS', yield* buildingUnpatchedListeners(shape, push, cache), shape, push);
}

export function buildRoutes(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  cache: Memory = noMemory,
): EnvoyResource[] {
  return applyEnvoyFilters(
    'RDS',
    withAttemptCount(unpatchedRoutes(shape, push, names, cache), shape, push),
    shape,
    push,
  );
}

/** Like {@link buildRoutes}, but yields regularly, with parts to encode. */
export function* buildingRoutes(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  cache: Memory,
): Generator<PartToEncode | undefined, EnvoyResource[]> {
  const unpatchedResources = yield* buildingUnpatchedRoutes(shape, push, names, cache);
  const routes = applyEnvoyFilters('RDS', withAttemptCount(unpatchedResources, shape, push), shape, push);
  if (shape.type === 'sidecar') return routes;
  yield undefined;
  const resourcesInPieces: EnvoyResource[] = [];
  for (const resource of routes) resourcesInPieces.push(yield* routesInPieces(resource));
  return resourcesInPieces;
}

export function buildExtensions(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  cache: Memory = noMemory,
): EnvoyResource[] {
  return applyEnvoyFilters('ECDS', buildWasmPlugins(shape, push, names, cache), shape, push, names);
}
