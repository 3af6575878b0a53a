/**
 * Converts assignments to the form that gRPC accepts: each locality has an ID and a weight, and addresses are unique.
 */
import { create } from '@bufbuild/protobuf';
import type { LbEndpoint } from '../../gen/envoy/config/endpoint/v3/endpoint_components_pb.ts';
import { LocalityLbEndpointsSchema } from '../../gen/envoy/config/endpoint/v3/endpoint_components_pb.ts';
import {
  type ClusterLoadAssignment,
  ClusterLoadAssignmentSchema,
} from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';

/** Replaces an empty locality, which gRPC treats as missing. */
const unknownRegion = 'unknown';

export function grpcAssignment({ clusterName, endpoints }: ClusterLoadAssignment): ClusterLoadAssignment {
  const seenAddresses = new Set<string>();
  const isFirstOccurrence = (endpoint: LbEndpoint): boolean => {
    const text = addressText(endpoint);
    if (text === undefined || seenAddresses.has(text)) return false;
    seenAddresses.add(text);
    return true;
  };
  const localities = endpoints.map(({ locality, lbEndpoints, loadBalancingWeight, priority }) => {
    const { region = '', zone = '', subZone = '' } = locality ?? {};
    return create(LocalityLbEndpointsSchema, {
      locality: { region: region || unknownRegion, zone, subZone },
      lbEndpoints: lbEndpoints.filter(isFirstOccurrence),
      loadBalancingWeight: loadBalancingWeight || 1,
      priority,
    });
  });
  return create(ClusterLoadAssignmentSchema, { clusterName, endpoints: localities });
}

function addressText({ hostIdentifier }: LbEndpoint): string | undefined {
  if (hostIdentifier.case !== 'endpoint') return undefined;
  const address = hostIdentifier.value.address?.address;
  if (address?.case !== 'socketAddress') return undefined;
  return `${address.value.address} ${address.value.portSpecifier.value}`;
}
