/** The generators of the types that EnvoyFilters patch: what is made, then patched. */
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { clustersAhead as unpatchedClustersAhead } from '../clusters/ahead.ts';
import {
  buildingClusters as buildingUnpatchedClusters,
  buildClusters as unpatchedClusters,
  buildSidecarClusters as unpatchedSidecarClusters,
} from '../clusters/build.ts';
import { buildWasmPlugins } from '../extensions/build.ts';
import { type Memory, noMemory } from '../inputs/generator-memory.ts';
import {
  buildingListeners as buildingUnpatchedListeners,
  buildListeners as unpatchedListeners,
} from '../listeners/build.ts';
import type { AheadPart, Resource } from '../messages/resource.ts';
import { buildingRoutes as buildingUnpatchedRoutes, buildRoutes as unpatchedRoutes } from '../routes/build.ts';
import { withAttemptCount } from '../routes/plan/attempt-count.ts';
import { routesInPieces } from '../routes/plan/routes-in-pieces.ts';
import { addedClusterNames, changedClusters } from './clusters.ts';
import { patched } from './index.ts';
import { haveSamePatches, patchSetOf } from './patch-set.ts';

/** What of a shape's clusters is other than a common shape's. */
export interface OwnClusters {
  readonly resources: readonly Resource[];
  /** Names of what the common shape has, and the shape has not. */
  readonly without: readonly string[];
}

export function buildClusters(shape: ProxyShape, push: PushContext, memory: Memory = noMemory): Resource[] {
  return patched('CDS', unpatchedClusters(shape, push, memory), shape, push);
}

/** The same with rests. */
export function* buildingClusters(
  shape: ProxyShape,
  push: PushContext,
  memory: Memory,
): Generator<undefined, Resource[]> {
  return patched('CDS', yield* buildingUnpatchedClusters(shape, push, memory), shape, push);
}

/** Patched ones are made ahead as patched: a patch of each of thousands takes longer than making them. */
export function* clustersAhead(shape: ProxyShape, push: PushContext, memory: Memory): Generator<Resource | undefined> {
  const patches = patchSetOf(shape, push);
  for (const cluster of unpatchedClustersAhead(shape, push, memory)) {
    if (cluster === undefined) yield undefined;
    else yield* changedClusters([cluster], patches, shape, push);
  }
}

/** As {@link unpatchedSidecarClusters}; undefined where a patch adds what one of them may be in the way of: all clusters say so. */
export function ownClusters(
  shape: ProxyShape,
  common: ProxyShape,
  push: PushContext,
  hosts: ReadonlySet<string>,
  memory: Memory = noMemory,
): OwnClusters | undefined {
  const [patches, theirs] = [patchSetOf(shape, push), patchSetOf(common, push)];
  if (!haveSamePatches(patches, theirs, 'CLUSTER')) return undefined;
  const clusters = changedClusters(unpatchedSidecarClusters(shape, push, hosts, memory), patches, shape, push);
  const others = changedClusters(unpatchedSidecarClusters(common, push, hosts, memory), theirs, common, push);
  const names = new Set(clusters.map(({ name }) => name));
  const without = others.map(({ name }) => name).filter((name) => !names.has(name));
  const isTouched = addedClusterNames(patches).some((name) => names.has(name) || without.includes(name));
  return isTouched ? undefined : { resources: clusters, without };
}

export function buildListeners(shape: ProxyShape, push: PushContext, memory: Memory = noMemory): Resource[] {
  return patched('LDS', unpatchedListeners(shape, push, memory), shape, push);
}

/** As {@link buildListeners}, with rests. */
export function* buildingListeners(
  shape: ProxyShape,
  push: PushContext,
  memory: Memory,
): Generator<undefined, Resource[]> {
  return patched('LDS', yield* buildingUnpatchedListeners(shape, push, memory), shape, push);
}

export function buildRoutes(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  memory: Memory = noMemory,
): Resource[] {
  return patched('RDS', withAttemptCount(unpatchedRoutes(shape, push, names, memory), shape, push), shape, push);
}

/** As {@link buildRoutes}, with rests, and with what is to be encoded of it. Those of gateways are encoded in pieces. */
export function* buildingRoutes(
  shape: ProxyShape,
  push: PushContext,
  names: readonly string[],
  memory: Memory,
): Generator<AheadPart | undefined, Resource[]> {
  const made = yield* buildingUnpatchedRoutes(shape, push, names, memory);
  const routes = patched('RDS', withAttemptCount(made, shape, push), shape, push);
  if (shape.type === 'sidecar') return routes;
  yield undefined;
  const inPieces: Resource[] = [];
  for (const resource of routes) inPieces.push(yield* routesInPieces(resource));
  return inPieces;
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
