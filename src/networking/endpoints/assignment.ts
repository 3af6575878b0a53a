import { create, type JsonObject } from '@bufbuild/protobuf';
import { HealthStatus } from '../../gen/envoy/config/core/v3/health_check_pb.ts';
import {
  type LbEndpoint,
  type LocalityLbEndpoints,
  LocalityLbEndpointsSchema,
} from '../../gen/envoy/config/endpoint/v3/endpoint_components_pb.ts';
import {
  type ClusterLoadAssignment,
  ClusterLoadAssignmentSchema,
} from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import type { Endpoint } from '../../model/services/service.ts';
import { socketAddress } from '../messages/address.ts';
import { type LocalityGroup, type LocalityOrder, localityGroups, weightOf } from './locality-groups.ts';

export function loadAssignment(
  clusterName: string,
  endpoints: readonly Endpoint[],
  localityOrder: LocalityOrder,
): ClusterLoadAssignment {
  return create(ClusterLoadAssignmentSchema, {
    clusterName,
    endpoints: localityGroups(endpoints, localityOrder).map(localityEndpoints),
  });
}

function localityEndpoints(group: LocalityGroup): LocalityLbEndpoints {
  const [region = '', zone = '', subZone = ''] = group.locality.split('/');
  return create(LocalityLbEndpointsSchema, {
    locality: { region, zone, subZone },
    lbEndpoints: group.endpoints.map(lbEndpoint),
    loadBalancingWeight: group.weight,
    priority: group.priority,
  });
}

/** An object literal is faster than `create`; a change of one endpoint rebuilds the messages of all endpoints of its cluster. */
function lbEndpoint(endpoint: Endpoint): LbEndpoint {
  return {
    $typeName: 'envoy.config.endpoint.v3.LbEndpoint',
    hostIdentifier: {
      case: 'endpoint',
      value: {
        $typeName: 'envoy.config.endpoint.v3.Endpoint',
        address: socketAddress(endpoint.address, endpoint.port),
        hostname: '',
        additionalAddresses: [],
      },
    },
    healthStatus: healthStatus[endpoint.health],
    metadata: {
      $typeName: 'envoy.config.core.v3.Metadata',
      filterMetadata: endpointMetadata(endpoint),
      typedFilterMetadata: {},
    },
    loadBalancingWeight: weightOf(endpoint),
  };
}

/** Terminating endpoints are never sent, so they have no entry. */
const healthStatus: Readonly<Record<Endpoint['health'], HealthStatus>> = {
  healthy: HealthStatus.HEALTHY,
  unhealthy: HealthStatus.UNHEALTHY,
  draining: HealthStatus.DRAINING,
  terminating: HealthStatus.DRAINING,
};

function endpointMetadata(endpoint: Endpoint): Record<string, JsonObject> {
  const { labels, workloadName } = endpoint;
  const canonicalName =
    labels['service.istio.io/canonical-name'] ?? labels['app.kubernetes.io/name'] ?? labels.app ?? workloadName;
  const revision =
    labels['service.istio.io/canonical-revision'] ?? labels['app.kubernetes.io/version'] ?? labels.version ?? '';
  const istio = {
    workload: `${workloadName};${endpoint.namespace};${canonicalName};${revision};${endpoint.clusterId}`,
  };
  // Selects the cluster's transport socket match `tlsMode-istio`. The keys are in the order of encoding.
  return endpoint.tlsMode === 'istio' ? { 'envoy.transport_socket_match': { tlsMode: 'istio' }, istio } : { istio };
}
