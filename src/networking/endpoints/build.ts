import { create } from '@bufbuild/protobuf';
import { ClusterLoadAssignmentSchema } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { memoizeByObject } from '../../model/collections/memoize-by-object.ts';
import type { ConfigKey } from '../../model/config/config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import type { PushContext } from '../../model/push-context/push-context.ts';
import { type Memory, noMemory } from '../inputs/generator-memory.ts';
import { ruleText } from '../inputs/input-text.ts';
import { EnvoyResource } from '../messages/resource.ts';
import { resolveAlias } from '../traffic/alias.ts';
import { type ProxyReach, proxyReachOf } from '../traffic/reach.ts';
import { parseAssignmentName } from '../traffic/resource-names.ts';
import { endpointShapeKey } from '../traffic/shape-keys.ts';
import { localityOrdering } from '../traffic/traffic-policy.ts';
import { loadAssignment } from './assignment.ts';
import { assignmentInputs, networkViewFor, selectionFor } from './assignment-inputs.ts';
import { reachableEndpoints } from './network-endpoints.ts';
import { selectEndpoints } from './selection.ts';

/** The assignment is empty if the proxy cannot reach the service. */
export function buildEndpoints(
  shape: ProxyShape,
  push: PushContext,
  clusterNames: readonly string[],
  cache: Memory = noMemory,
): EnvoyResource[] {
  const reach = proxyReachOf(shape, push);
  return clusterNames.map((name) => endpointsOfCluster(name, push, reach, shape, cache));
}

function endpointsOfCluster(
  clusterName: string,
  push: PushContext,
  reach: ProxyReach,
  shape: ProxyShape,
  cache: Memory,
): EnvoyResource {
  const inputs = assignmentInputs(clusterName, push, reach);
  if ('missingText' in inputs) return emptyAssignment(clusterName, inputs.dependsOn);
  const { service, alias, rule, endpoints, policy, dependsOn } = inputs;
  // Nothing is cached while an alias changes its target: until the cluster with the new target is warm, Envoy uses endpoints of the previous target.
  const usableMemory =
    alias && resolveAlias(alias.hostname, reach).service?.hostname !== service.hostname ? noMemory : cache;
  const ordering = localityOrdering(policy, push.mesh.localityLbSetting, service);
  const { network, clusterId, proxyless = false } = shape;
  const key = `${clusterName} ${service.namespace} ${ruleText(rule)} ${endpointShapeKey(shape, ordering, service)} ${network} ${clusterId} ${proxyless}`;
  return usableMemory.getOrBuild('EDS', key, [service, alias, rule, endpoints, push.mesh, push.networkGateways], () => {
    const selectedEndpoints = selectEndpoints(endpoints, selectionFor(inputs, shape, push));
    const assignment = loadAssignment(
      clusterName,
      reachableEndpoints(selectedEndpoints, networkViewFor(inputs, shape, push)),
      {
        proxyLocality: shape.locality,
        proxyLabels: shape.labels,
        proxyNetwork: network,
        proxyNode: shape.nodeName,
        setting: ordering,
        outlierDetection: policy.outlierDetection !== undefined,
      },
    );
    return new EnvoyResource(clusterName, ClusterLoadAssignmentSchema, assignment, dependsOn);
  });
}

/** Not cached, because clients may request any number of unknown names. */
function emptyAssignment(clusterName: string, dependsOn: readonly ConfigKey[]): EnvoyResource {
  return new EnvoyResource(
    clusterName,
    ClusterLoadAssignmentSchema,
    create(ClusterLoadAssignmentSchema, { clusterName }),
    [...dependsOn],
  );
}

/** Returns an empty text if the cluster is not outbound. */
export function hostOfAssignment(name: string): string {
  const nameParts = parseAssignmentName(name);
  return nameParts?.target ?? nameParts?.host ?? '';
}

/** An alias may have its own DestinationRule, which affects the names that contain the alias. */
export function namesByAliases(hosts: ReadonlySet<string>, names: readonly string[]): readonly string[] {
  if (hosts.size === 0) return [];
  return aliasNamesIn(names).filter((name) => hosts.has(parseAssignmentName(name)!.host));
}

const aliasNamesIn = memoizeByObject((names: readonly string[]) =>
  names.filter((name) => parseAssignmentName(name)?.target !== undefined),
);
