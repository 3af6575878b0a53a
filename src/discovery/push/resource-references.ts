/** References between encoded resources, parsed once for each resource and shared by all streams. */
import { onceFor } from '../../model/collections/once-for.ts';
import { fetchesEndpoints, isEmptyAssignment } from '../../networking/references/cluster-endpoints.ts';
import { clustersAmong, clustersNamedIn, namesCluster } from '../../networking/references/cluster-references.ts';
import { secretsIn, usabilityOf } from '../../networking/references/cluster-usability.ts';
import { withFetchLimit } from '../../networking/references/fetch-limit.ts';
import { hasHosts, routeConfigurationsOf } from '../../networking/references/route-configurations.ts';
import type { EncodedResource, FetchLimit, ResourceReferences } from '../xds/resource-source.ts';
import { encodeValue, valueOf } from '../xds/responses/encoding.ts';

const cachedClusters = onceFor((resource: EncodedResource) => clustersNamedIn(valueOf(resource)));

const cachedUsability = onceFor((cluster: EncodedResource) => {
  const { first, start } = valueOf(cluster);
  return usabilityOf(first, start);
});

const cachedEndpointFetching = onceFor((cluster: EncodedResource) => {
  const { first, start } = valueOf(cluster);
  return { fetches: fetchesEndpoints(first, start) };
});

const emptinessOf = onceFor((assignment: EncodedResource) => {
  const { first, start, rest } = valueOf(assignment);
  return { isEmpty: rest.length === 0 && isEmptyAssignment(first, start) };
});

const secretsOf = onceFor((cluster: EncodedResource) => {
  const { first, start } = valueOf(cluster);
  return secretsIn(first, start);
});

const cachedWithFetchLimit = onceFor((cluster: EncodedResource) =>
  onceFor((limit: FetchLimit) => {
    const { typeUrl, first, start, rest } = valueOf(cluster);
    const limited = withFetchLimit(Buffer.concat([first.subarray(start), ...rest]), limit);
    return limited === undefined ? cluster : encodeValue(typeUrl, limited, cluster.name);
  }),
);

const cachedRouteConfigurations = onceFor((listener: EncodedResource) => routeConfigurationsOf(valueOf(listener)));

const hostPresenceOf = onceFor((configuration: EncodedResource) => ({ hasHosts: hasHosts(valueOf(configuration)) }));

export const resourceReferences: ResourceReferences = {
  names: (resource, cluster) => namesCluster(cachedClusters(resource), cluster),
  namesAmong: (resource, clusters) => clustersAmong(cachedClusters(resource), clusters),
  usabilityOf: cachedUsability,
  fetchesEndpoints: (cluster) => cachedEndpointFetching(cluster).fetches,
  isEmptyAssignment: (assignment) => emptinessOf(assignment).isEmpty,
  secretsOf,
  routeConfigurationsOf: cachedRouteConfigurations,
  hasHosts: (configuration) => hostPresenceOf(configuration).hasHosts,
  withFetchLimit: (cluster, limit) => cachedWithFetchLimit(cluster)(limit),
};
