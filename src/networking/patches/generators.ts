/** Generators that apply EnvoyFilter patches. */
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
  buildingListeners as buildingUnpatchedListeners,
  buildListeners as unpatchedListeners,
} from '../listeners/build.ts';
import type { EnvoyResource, PartToEncode } from '../messages/resource.ts';
import { buildingRoutes as buildingUnpatchedRoutes, buildRoutes as unpatchedRoutes } from '../routes/build.ts';
import { withAttemptCount } from '../routes/plan/attempt-count.ts';
import { routesInPieces } from '../routes/plan/routes-in-pieces.ts';
import { addedClusterNames, changedClusters } from './clusters.ts';
import { applyEnvoyFilters } from './index.ts';
import { haveSamePatches, patchSetOf } from './patch-set.ts';

/** Differences between the clusters of a shape and those of a common shape. */
export interface DifferingClusters {
  readonly resources: readonly EnvoyResource[];
  /** Clusters that only the common shape has. */
  readonly removed: readonly string[];
}

export function buildClusters(shape: ProxyShape, push: PushContext, memory: Memory = noMemory): EnvoyResource[] {
  return applyEnvoyFilters('CDS', unpatchedClusters(shape, push, memory), shape, push);
}

export function* buildingClusters(
  shape: ProxyShape,
  push: PushContext,
  memory: Memory,
): Generator<undefined, EnvoyResource[]> {
  return applyEnvoyFilters('CDS', yield* buildingUnpatchedClusters(shape, push, memory), shape, push);
}

/** Precomputes patched clusters. Patching thousands of clusters takes longer than building them. */
export function* precomputeClusters(
  shape: ProxyShape,
  push: PushContext,
  memory: Memory,
): Generator<EnvoyResource | undefined> {
  const patches = patchSetOf(shape, push);
  for (const cluster of unpatchedClustersAhead(shape, push, memory)) {
    if (cluster === undefined) yield undefined;
    else yield* changedClusters([cluster], patches, shape, push);
  }
}

/**
 * The patched results of {@link unpatchedSidecarClusters}. `undefined` if an added cluster may conflict with one of
 * them, which only the full list shows.
 */
export function differingClusters(
  shape: ProxyShape,
  common: ProxyShape,
  push: PushContext,
  hosts: ReadonlySet<string>,
  memory: Memory = noMemory,
): DifferingClusters | undefined {
  const [patches, commonPatches] = [patchSetOf(shape, push), patchSetOf(common, push)];
  if (!haveSamePatches(patches, commonPatches, 'CLUSTER')) return undefined;
  const clusters = changedClusters(unpatchedSidecarClusters(shape, push, hosts, memory), patches, shape, push);
  const commonClusters = changedClusters(
    unpatchedSidecarClusters(common, push, hosts, memory),
    commonPatches,
    common,
    push,
  );
  const names = new Set(clusters.map(({ name }) => name));
  const removed = commonClusters.map(({ name }) => name).filter((name) => !names.has(name));
  const isTouched = addedClusterNames(patches).some((name) => names.has(name) || removed.includes(name));
  return isTouched ? undefined : { resources: clusters, removed };
}

export function buildListeners(shape: ProxyShape, push: PushContext, memory: Memory = noMemory): EnvoyResource[] {
  return applyEnvoyFilters('LDS', unpatchedListeners(shape, push, memory), shape, push);
}

export function* buildingListeners(
  shape: ProxyShape,
  push: PushContext,
  memory: Memory,
): Generator<undefined, EnvoyResource[]> {
  return applyEnvoyFilters('LDS', yield* buildingUnpatchedListeners(shape, push, memory), shape, push);
}

export function buildRoutes(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  memory: Memory = noMemory,
): EnvoyResource[] {
  return applyEnvoyFilters(
    'RDS',
    withAttemptCount(unpatchedRoutes(shape, push, names, memory), shape, push),
    shape,
    push,
  );
}

/** Like {@link buildRoutes}, but yields regularly, with parts to encode. Gateway configurations are encoded in pieces. */
export function* buildingRoutes(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  memory: Memory,
): Generator<PartToEncode | undefined, EnvoyResource[]> {
  const unpatched = yield* buildingUnpatchedRoutes(shape, push, names, memory);
  const routes = applyEnvoyFilters('RDS', withAttemptCount(unpatched, shape, push), shape, push);
  if (shape.type === 'sidecar') return routes;
  yield undefined;
  const inPieces: EnvoyResource[] = [];
  for (const resource of routes) inPieces.push(yield* routesInPieces(resource));
  return inPieces;
}

/** Extension configurations, which filters request by ECDS. */
export function buildExtensions(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  memory: Memory = noMemory,
): EnvoyResource[] {
  return applyEnvoyFilters('ECDS', buildWasmPlugins(shape, push, names, memory), shape, push, names);
}
