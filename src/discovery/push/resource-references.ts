/** What encoded resources say of clusters and route configurations, found out once for each resource and shared by all streams that are sent it. */
import { onceFor } from '../../model/collections/once-for.ts';
import { fetchesEndpoints, isEmptyAssignment } from '../../networking/references/cluster-endpoints.ts';
import { clustersAmong, clustersNamedIn, namesCluster } from '../../networking/references/cluster-references.ts';
import { secretsIn, usabilityOf } from '../../networking/references/cluster-usability.ts';
import { withFetchLimit } from '../../networking/references/fetch-limit.ts';
import { hasHosts, routeConfigurationsOf } from '../../networking/references/route-configurations.ts';
import type { EncodedResource, FetchLimit, ResourceReferences } from '../xds/resource-source.ts';
import { encodeValue, valueOf } from '../xds/responses/encoding.ts';

const clustersOf = onceFor((resource: EncodedResource) => clustersNamedIn(valueOf(resource)));

const usability = onceFor((cluster: EncodedResource) => {
  const { first, start } = valueOf(cluster);
  return usabilityOf(first, start);
});

const endpointsFetchedBy = onceFor((cluster: EncodedResource) => {
  const { first, start } = valueOf(cluster);
  return { fetches: fetchesEndpoints(first, start) };
});

const endpointsIn = onceFor((assignment: EncodedResource) => {
  const { first, start, rest } = valueOf(assignment);
  return { areNone: rest.length === 0 && isEmptyAssignment(first, start) };
});

const secretsOf = onceFor((cluster: EncodedResource) => {
  const { first, start } = valueOf(cluster);
  return secretsIn(first, start);
});

const limitedOf = onceFor((cluster: EncodedResource) =>
  onceFor((limit: FetchLimit) => {
    const { typeUrl, first, start, rest } = valueOf(cluster);
    const limited = withFetchLimit(Buffer.concat([first.subarray(start), ...rest]), limit);
    return limited === undefined ? cluster : encodeValue(typeUrl, limited, cluster.name);
  }),
);

const routeConfigurationsIn = onceFor((listener: EncodedResource) => routeConfigurationsOf(valueOf(listener)));

const hostsIn = onceFor((configuration: EncodedResource) => ({ areThere: hasHosts(valueOf(configuration)) }));

export const resourceReferences: ResourceReferences = {
  names: (resource, cluster) => namesCluster(clustersOf(resource), cluster),
  namesAmong: (resource, clusters) => clustersAmong(clustersOf(resource), clusters),
  usabilityOf: usability,
  fetchesEndpoints: (cluster) => endpointsFetchedBy(cluster).fetches,
  isEmptyAssignment: (assignment) => endpointsIn(assignment).areNone,
  secretsOf,
  routeConfigurationsOf: routeConfigurationsIn,
  hasHosts: (configuration) => hostsIn(configuration).areThere,
  withFetchLimit: (cluster, limit) => limitedOf(cluster)(limit),
};
