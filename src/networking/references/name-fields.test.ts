import type { DescMessage } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import { envoyApi } from '../../model/envoy-api/envoy-api.ts';
import { clusterFields, messagesWithoutClusters, routeConfigurationFields, secretFields } from './name-fields.ts';

/** Fields with "cluster" in their name that do not reference a required cluster. */
const otherFields: ReadonlySet<string> = new Set([
  // The node's own cluster name.
  'envoy.config.core.v3.Node.cluster',
  'envoy.config.endpoint.v3.ClusterLoadAssignment.cluster_name',
  'envoy.config.endpoint.v3.ClusterStats.cluster_name',
  'envoy.config.endpoint.v3.ClusterStats.cluster_service_name',
  // Each request selects the cluster.
  'envoy.config.route.v3.WeightedCluster.ClusterWeight.cluster_header',
  'envoy.config.route.v3.RouteAction.cluster_header',
  'envoy.config.route.v3.RouteAction.cluster_specifier_plugin',
  'envoy.config.route.v3.RouteAction.RequestMirrorPolicy.cluster_header',
  'envoy.extensions.filters.network.thrift_proxy.v3.RouteAction.cluster_header',
  // Clusters in the bootstrap.
  'envoy.config.metrics.v3.StatsdSink.tcp_cluster_name',
  'envoy.config.bootstrap.v3.ClusterManager.local_cluster_name',
  // Clusters in a cluster: Envoy acknowledges an aggregate cluster together with its members.
  'envoy.extensions.clusters.aggregate.v3.ClusterConfig.clusters',
  // Condition of a match.
  'envoy.extensions.filters.http.fault.v3.HTTPFault.upstream_cluster',
]);

function* messages(): Generator<DescMessage> {
  for (const type of envoyApi()) {
    const isDataPlaneMessage = type.kind === 'message' && !/^envoy\.(admin|service|data|api)\./.test(type.typeName);
    if (isDataPlaneMessage) yield type;
  }
}

test('an API field with a cluster name is in the tables, or does not require that the cluster exists', () => {
  const nameFields = [...messages()].flatMap(({ typeName, fields }) =>
    fields.flatMap(({ name, number, scalar }) => {
      const names = /cluster/.test(name) || (name === 'name' && typeName.endsWith('ClusterWeight'));
      const isKnownField = otherFields.has(`${typeName}.${name}`) || clusterFields[typeName]?.includes(number);
      return names && scalar === 9 && !isKnownField ? [`${typeName}.${name}`] : [];
    }),
  );
  expect(nameFields).toEqual([]);
});

test('the tables contain only string fields of the API', () => {
  const scalars = Object.entries({ ...clusterFields, ...secretFields, ...routeConfigurationFields }).flatMap(
    ([typeName, numbers]) =>
      numbers.map(
        (number) =>
          envoyApi()
            .getMessage(typeName)
            ?.fields.find((field) => field.number === number)?.scalar,
      ),
  );
  expect(new Set(scalars)).toEqual(new Set([9]));
});

test('messages that are skipped cannot contain a cluster name', () => {
  for (const typeName of messagesWithoutClusters) {
    const reachedTypes = reachableFrom(envoyApi().getMessage(typeName)!);
    const naming = [...reachedTypes].filter(
      (reachedType) => reachedType in clusterFields || reachedType === 'google.protobuf.Any',
    );
    expect(naming, typeName).toEqual([]);
  }
});

function reachableFrom(schema: DescMessage, reachedTypes = new Set<string>()): Set<string> {
  if (reachedTypes.has(schema.typeName)) return reachedTypes;
  reachedTypes.add(schema.typeName);
  for (const { message } of schema.fields) if (message !== undefined) reachableFrom(message, reachedTypes);
  return reachedTypes;
}
