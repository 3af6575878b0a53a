import { type Cluster, ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { type TransportSocket, TransportSocketSchema } from '../../gen/envoy/config/core/v3/base_pb.ts';
import { configKeyOf } from '../../model/config/config.ts';
import type { ClusterMatch } from '../../model/kinds/envoy-filter/envoy-filter.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { originsOf, withOrigins } from '../inputs/message-origin.ts';
import { EnvoyResource } from '../messages/resource.ts';
import { inboundTargets } from '../traffic/inbound-target.ts';
import { inboundPassthroughCluster, parseOutboundClusterName } from '../traffic/resource-names.ts';
import type { ActivePatch } from './active-patch.ts';
import { withAdded } from './additions.ts';
import { applyPatches, listMergeOf, mergeWithPatch } from './apply-patches.ts';
import { firstConditionKey, KeyedPatches } from './keyed-patches.ts';
import { mergeMessages, PatchFailure, shallowCopy } from './merge-messages.ts';
import { memoizeByPatchSet } from './once-per-patch-set.ts';
import { isMerge, type ListenerContext, matchesPlace, messageOfPatch, type PatchSet } from './patch-set.ts';

export function patchedClusters(
  clusters: EnvoyResource[],
  patches: PatchSet,
  shape: ProxyShape,
  push: PushContext,
): EnvoyResource[] {
  return withAdded(changedClusters(clusters, patches, shape, push), addedPatchesOf(patches), {
    schema: ClusterSchema,
    description: 'a cluster',
  });
}

export function changedClusters(
  clusters: EnvoyResource[],
  patches: PatchSet | undefined,
  shape: ProxyShape,
  push: PushContext,
): EnvoyResource[] {
  const changingPatches = (patches?.takePatches('CLUSTER') ?? []).filter(({ patch }) => patch.operation !== 'ADD');
  if (changingPatches.length === 0) return clusters;
  const hostsOf = inboundHosts(shape, push);
  const keyedPatches = new KeyedPatches(changingPatches, keyOf);
  return clusters.flatMap((cluster) => {
    const matchingPatches = keyedPatches
      .patchesFor(keysOf(cluster.name, keyedPatches, hostsOf))
      .filter((activePatch) => matchesPatch(activePatch, cluster.name, shape, hostsOf));
    return matchingPatches.length === 0 ? [cluster] : patchedCluster(cluster, matchingPatches, patches!);
  });
}

function addedPatchesOf(patches: PatchSet | undefined): readonly ActivePatch[] {
  return (patches?.takePatches('CLUSTER') ?? []).filter(({ patch }) => patch.operation === 'ADD');
}

export function addedClusterNames(patches: PatchSet | undefined): readonly string[] {
  return addedPatchesOf(patches).flatMap((activePatch) => {
    const { value } = activePatch.patch;
    return typeof value?.name === 'string' ? [value.name] : [];
  });
}

function patchedCluster(
  cluster: EnvoyResource,
  matchingPatches: readonly ActivePatch[],
  patches: PatchSet,
): readonly EnvoyResource[] {
  return memoizeByPatchSet(cluster, patches, matchingPatches.map(({ index }) => index).join(), () => {
    const unpatchedCluster = cluster.message as Cluster;
    const message = applyPatches(unpatchedCluster, matchingPatches, (patchedCluster, activePatch) =>
      isMerge(activePatch) ? mergedCluster(patchedCluster, activePatch) : undefined,
    );
    if (message === unpatchedCluster) return [cluster];
    const dependsOn = [...cluster.dependsOn, ...matchingPatches.map(({ filter }) => configKeyOf(filter))];
    return message === undefined ? [] : [new EnvoyResource(cluster.name, cluster.schema, message, dependsOn)];
  });
}

/** Keeps the name, because routes and filters refer to it. */
function mergedCluster(cluster: Cluster, activePatch: ActivePatch): Cluster {
  const value = messageOfPatch(ClusterSchema, activePatch);
  const { transportSocket: socket, transportSocketMatches } = value;
  const matchesSocket =
    socket !== undefined && transportSocketMatches.length === 0 && cluster.transportSocketMatches.length > 0;
  const result = matchesSocket
    ? mergeWithPatch(ClusterSchema, withSocketMerged(cluster, socket, activePatch), activePatch, withoutSocket(value))
    : mergeWithPatch(ClusterSchema, cluster, activePatch);
  result.name = cluster.name;
  return result;
}

/**
 * Changes the transport socket match with the socket's name. An additional socket would never be used if endpoints
 * select their sockets by a match.
 *
 * @throws PatchFailure if no match has the name
 */
function withSocketMerged(cluster: Cluster, socket: TransportSocket, activePatch: ActivePatch): Cluster {
  const matches = cluster.transportSocketMatches;
  const matchIndex = matches.findIndex(({ transportSocket }) => transportSocket?.name === socket.name);
  const match = matches[matchIndex];
  if (match === undefined) {
    throw new PatchFailure(`the cluster has no transport socket ${socket.name} for any of its endpoints`);
  }
  const changedMatch = shallowCopy(match);
  changedMatch.transportSocket = mergeMessages(
    TransportSocketSchema,
    match.transportSocket!,
    socket,
    listMergeOf(activePatch),
  );
  const result = shallowCopy(cluster);
  result.transportSocketMatches = matches.with(matchIndex, changedMatch);
  return withOrigins(result, originsOf(cluster));
}

function withoutSocket(value: Cluster): Cluster {
  const { transportSocket: _, ...otherFields } = value;
  return Object.assign(Object.create(Object.getPrototypeOf(value)) as Cluster, otherFields);
}

type HostsOfPort = (port: number) => readonly string[];

function inboundHosts(shape: ProxyShape, push: PushContext): HostsOfPort {
  let targets: ReturnType<typeof inboundTargets> | undefined;
  return (port) => {
    targets ??= inboundTargets(shape, push);
    return targets.find((target) => target.port === port)?.services.map(({ hostname }) => hostname) ?? [];
  };
}

function keyOf({ patch: { match } }: ActivePatch): string | undefined {
  const { name, service, subset, portNumber } = match.cluster ?? {};
  return firstConditionKey({ name, service, subset, portNumber });
}

function keysOf(name: string, { hasKeys }: KeyedPatches, hostsOf: HostsOfPort): string[] {
  if (!hasKeys) return [];
  const inbound = inboundPort(name);
  const outbound = parseOutboundClusterName(name);
  const services = inbound === undefined ? [outbound?.host] : hostsOf(inbound);
  const subset = outbound?.subset;
  return [{ name }, ...services.map((service) => ({ service })), { subset }, { portNumber: inbound ?? outbound?.port }]
    .map(firstConditionKey)
    .filter((key) => key !== undefined);
}

function matchesPatch(activePatch: ActivePatch, name: string, shape: ProxyShape, hostsOf: HostsOfPort): boolean {
  if (!matchesPlace(activePatch, contextOf(name, shape))) return false;
  const clusterMatch = activePatch.patch.match.cluster;
  return clusterMatch === undefined || isNamed(clusterMatch, name, hostsOf);
}

function contextOf(name: string, { type }: ProxyShape): ListenerContext {
  if (type === 'router') return 'GATEWAY';
  return inboundPort(name) !== undefined || name.startsWith(inboundPassthroughCluster)
    ? 'SIDECAR_INBOUND'
    : 'SIDECAR_OUTBOUND';
}

function inboundPort(name: string): number | undefined {
  const [, port] = /^inbound\|(\d+)\|/.exec(name) ?? [];
  return port === undefined ? undefined : Number(port);
}

/** If the match has a name, other fields are ignored. Otherwise all given fields must match. */
function isNamed(
  { name, service, subset, portNumber }: ClusterMatch,
  clusterName: string,
  hostsOf: HostsOfPort,
): boolean {
  if (name !== undefined && name !== '') return name === clusterName;
  const inbound = inboundPort(clusterName);
  const outbound = parseOutboundClusterName(clusterName);
  const port = inbound ?? outbound?.port;
  if (portNumber !== undefined && portNumber !== port) return false;
  if (subset !== undefined && subset !== '' && subset !== outbound?.subset) return false;
  if (service === undefined || service === '') return true;
  return inbound === undefined ? service === outbound?.host : hostsOf(inbound).includes(service);
}
