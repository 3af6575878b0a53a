import { fromBinary } from '@bufbuild/protobuf';
import { Cluster_DiscoveryType, ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { ClusterLoadAssignmentSchema } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';

/** Larger assignments are assumed to have endpoints, without decoding them. */
const maxEmptyBytes = 1_024;

/** @param firstChunk chunk of the encoded cluster, which begins at `start` */
export function fetchesEndpoints(firstChunk: Uint8Array, start: number): boolean {
  const { clusterDiscoveryType } = fromBinary(ClusterSchema, firstChunk.subarray(start));
  return clusterDiscoveryType.value === Cluster_DiscoveryType.EDS;
}

export function isEmptyAssignment(firstChunk: Uint8Array, start: number): boolean {
  if (firstChunk.length - start > maxEmptyBytes) return false;
  const { endpoints } = fromBinary(ClusterLoadAssignmentSchema, firstChunk.subarray(start));
  return endpoints.every(({ lbEndpoints }) => lbEndpoints.length === 0);
}
