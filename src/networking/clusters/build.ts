import { type Cluster, ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { limitedSubsets } from '../../model/services/limited-subsets.ts';
import { type Service, serviceKey } from '../../model/services/service.ts';
import { isAlias } from '../../model/services/service-alias.ts';
import { servicesByHost } from '../../model/services/services-within.ts';
import { runToEnd } from '../../runtime/turns.ts';
import { mergeGateways } from '../gateway/merge-gateways.ts';
import { referencedServices } from '../gateway/referenced-services.ts';
import { type Memory, noMemory } from '../inputs/generator-memory.ts';
import { type EnvoyResource, namedResource } from '../messages/resource.ts';
import { hasOwnClusters, resolveAlias, ruleOfAlias } from '../traffic/alias.ts';
import { type ProxyReach, proxyReachOf } from '../traffic/reach.ts';
import { inboundClusters } from './inbound.ts';
import { sniCluster } from './outbound.ts';
import { sharedOutboundClusters } from './shared-outbound.ts';
import { blackHole, dynamicDns, inboundPassthrough, passthrough } from './special.ts';

/** Returns clusters in the order in which Envoy receives them. Of several clusters with one name, the first is kept. */
export function buildClusters(shape: ProxyShape, push: PushContext, cache: Memory = noMemory): EnvoyResource[] {
  return runToEnd(buildingClusters(shape, push, cache));
}

export function* buildingClusters(
  shape: ProxyShape,
  push: PushContext,
  cache: Memory,
): Generator<undefined, EnvoyResource[]> {
  const reach = proxyReachOf(shape, push);
  const services = shape.type === 'router' ? referencedServices(reach.services, shape, push) : reach.services;
  const otherClusters =
    shape.type === 'router' ? gatewayClusters(shape, push, reach) : sidecarClusters(shape, push, cache);
  const clusters: (readonly EnvoyResource[])[] = [];
  for (const [index, service] of services.entries()) {
    clusters.push(clustersOfService(service, reach, shape, push, cache));
    if (index % servicesAtATime === servicesAtATime - 1) yield undefined;
  }
  return withoutRepetitions([...clusters, otherClusters]);
}

const servicesAtATime = 64;

/** Builds the clusters that may differ from a common list: those of some hosts and of the sidecar's own workload. */
export function buildSidecarClusters(
  shape: ProxyShape,
  push: PushContext,
  hosts: ReadonlySet<string>,
  cache: Memory = noMemory,
): EnvoyResource[] {
  const reach = proxyReachOf(shape, push);
  const servicesOfHosts = servicesByHost(reach.services);
  // Sorted, so that the insertion order of the hosts has no effect.
  const services = [...hosts].sort().flatMap((host) => servicesOfHosts(host));
  return withoutRepetitions([
    ...services.map((service) => clustersOfService(service, reach, shape, push, cache)),
    sidecarClusters(shape, push, cache),
  ]);
}

function clustersOfService(
  service: Service,
  reach: ProxyReach,
  shape: ProxyShape,
  push: PushContext,
  cache: Memory,
): readonly EnvoyResource[] {
  return isAlias(service)
    ? aliasClusters(service, reach, shape, push, cache)
    : sharedOutboundClusters(service, reach.destinationRuleFor(service), shape, push, cache);
}

function withoutRepetitions(lists: readonly (readonly EnvoyResource[])[]): EnvoyResource[] {
  const clusterByName = new Map<string, EnvoyResource>();
  for (const clusters of lists) {
    for (const cluster of clusters) if (!clusterByName.has(cluster.name)) clusterByName.set(cluster.name, cluster);
  }
  return [...clusterByName.values()];
}

/** The service's clusters with the name of the alias, if the alias has its own clusters. */
function aliasClusters(
  alias: Service,
  reach: ProxyReach,
  shape: ProxyShape,
  push: PushContext,
  cache: Memory,
): readonly EnvoyResource[] {
  const { service } = resolveAlias(alias.hostname, reach);
  if (service === undefined || !hasOwnClusters(alias, reach)) return [];
  return sharedOutboundClusters(service, ruleOfAlias(alias, service, reach), shape, push, cache, alias);
}

function sidecarClusters(shape: ProxyShape, push: PushContext, cache: Memory): EnvoyResource[] {
  const { mesh } = push;
  const { ipFamily, interceptionMode } = shape;
  const { outboundTrafficPolicy } = push.sidecarScopeFor(shape);
  const specialResource = (cluster: Cluster): EnvoyResource => namedResource(ClusterSchema, cluster);
  const specialClusters = cache.getOrBuild('CDS', `special ${ipFamily}`, [mesh], () => ({
    blackHole: specialResource(blackHole(mesh)),
    passthrough: specialResource(passthrough(mesh)),
    dynamicDns: specialResource(dynamicDns(shape, mesh)),
    inboundPassthrough: specialResource(inboundPassthrough(mesh, ipFamily)),
    dependsOn: [],
  }));
  return [
    specialClusters.blackHole,
    specialClusters.passthrough,
    ...(outboundTrafficPolicy.mode === 'ALLOW_ANY_DYNAMIC_DNS' ? [specialClusters.dynamicDns] : []),
    ...inboundClusters(shape, push),
    ...(interceptionMode === 'NONE' ? [] : [specialClusters.inboundPassthrough]),
  ];
}

function gatewayClusters(shape: ProxyShape, push: PushContext, reach: ProxyReach): EnvoyResource[] {
  const clusters = [namedResource(ClusterSchema, blackHole(push.mesh))];
  if (!mergeGateways(shape, push).hasAutoPassthrough) return clusters;
  for (const service of reach.services) {
    if (service.meshExternal) continue;
    const rule = reach.destinationRuleFor(service);
    const subsets = ['', ...limitedSubsets(service, rule?.config.spec).map((subset) => subset.name)];
    for (const port of service.ports.filter(({ protocol }) => protocol !== 'UDP')) {
      for (const subset of subsets) {
        const cluster = sniCluster({ service, port, subset, rule }, shape, push);
        if (cluster)
          clusters.push(namedResource(ClusterSchema, cluster, [serviceKey(service), ...(rule?.origins ?? [])]));
      }
    }
  }
  return clusters;
}
