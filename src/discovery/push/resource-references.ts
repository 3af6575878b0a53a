/** What encoded resources say of clusters, found out once for each resource and shared by all streams that are sent it. */
import { onceFor } from '../../model/collections/once-for.ts';
import { clustersNamedIn, namesCluster } from '../../networking/references/cluster-references.ts';
import { secretsIn, usabilityOf } from '../../networking/references/cluster-usability.ts';
import type { EncodedResource, ResourceReferences } from '../ads/resource-source.ts';
import { valueOf } from '../ads/responses/encoding.ts';

const clustersOf = onceFor((resource: EncodedResource) => clustersNamedIn(valueOf(resource)));

const usability = onceFor((cluster: EncodedResource) => {
  const { first, start } = valueOf(cluster);
  return usabilityOf(first, start);
});

const secretsOf = onceFor((cluster: EncodedResource) => {
  const { first, start } = valueOf(cluster);
  return secretsIn(first, start);
});

export const resourceReferences: ResourceReferences = {
  names: (resource, cluster) => namesCluster(clustersOf(resource), cluster),
  usabilityOf: usability,
  fetches: (cluster, secret) => secretsOf(cluster).has(secret),
};
