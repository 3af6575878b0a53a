/** Each resource is parsed once for all streams. */
import { memoizeByObject } from '../../model/collections/memoize-by-object.ts';
import { fetchesEndpoints, isEmptyAssignment } from '../../networking/references/cluster-endpoints.ts';
import { clustersAmong, clustersNamedIn, namesCluster } from '../../networking/references/cluster-references.ts';
import { clusterWarmingOf, secretsIn } from '../../networking/references/cluster-usability.ts';
import { withFetchLimit } from '../../networking/references/fetch-limit.ts';
import { hasHosts, routeConfigurationsOf } from '../../networking/references/route-configurations.ts';
import type { EncodedResource, FetchLimit, ResourceReferences } from '../xds/resource-source.ts';
import { encodeValue, valueOf } from '../xds/responses/encoding.ts';

const cachedClusters = memoizeByObject((resource: EncodedResource) => clustersNamedIn(valueOf(resource)));

const cachedUsability = memoizeByObject((cluster: EncodedResource) => {
  const { firstChunk, start } = valueOf(cluster);
  return clusterWarmingOf(firstChunk, start);
});

const cachedEndpointFetching = memoizeByObject((cluster: EncodedResource) => {
  const { firstChunk, start } = valueOf(cluster);
  return { fetches: fetchesEndpoints(firstChunk, start) };
});

const cachedEmptiness = memoizeByObject((assignment: EncodedResource) => {
  const { firstChunk, start, tailChunks } = valueOf(assignment);
  return { isEmpty: tailChunks.length === 0 && isEmptyAssignment(firstChunk, start) };
});

const cachedSecrets = memoizeByObject((cluster: EncodedResource) => {
  const { firstChunk, start } = valueOf(cluster);
  return secretsIn(firstChunk, start);
});

const cachedWithFetchLimit = memoizeByObject((cluster: EncodedResource) =>
  memoizeByObject((limit: FetchLimit) => {
    const { typeUrl, firstChunk, start, tailChunks } = valueOf(cluster);
    const limitedBytes = withFetchLimit(Buffer.concat([firstChunk.subarray(start), ...tailChunks]), limit);
    return limitedBytes === undefined ? cluster : encodeValue(typeUrl, limitedBytes, cluster.name);
  }),
);

const cachedRouteConfigurations = memoizeByObject((listener: EncodedResource) =>
  routeConfigurationsOf(valueOf(listener)),
);

const cachedHostPresence = memoizeByObject((configuration: EncodedResource) => ({
  hasHosts: hasHosts(valueOf(configuration)),
}));

export const resourceReferences: ResourceReferences = {
  names: (resource, cluster) => namesCluster(cachedClusters(resource), cluster),
  referencedNamesAmong: (resource, clusters) => clustersAmong(cachedClusters(resource), clusters),
  usabilityOf: cachedUsability,
  fetchesEndpoints: (cluster) => cachedEndpointFetching(cluster).fetches,
  isEmptyAssignment: (assignment) => cachedEmptiness(assignment).isEmpty,
  secretsOf: cachedSecrets,
  routeConfigurationsOf: cachedRouteConfigurations,
  hasHosts: (configuration) => cachedHostPresence(configuration).hasHosts,
  withFetchLimit: (cluster, limit) => cachedWithFetchLimit(cluster)(limit),
};
