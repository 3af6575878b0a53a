import { create, type DescMessage, fromBinary, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { clusterType, endpointType, listenerType, routeType } from '../../../machines/discovery/xds/ads-types.ts';
import { ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import {
  ClusterLoadAssignment_PolicySchema,
  ClusterLoadAssignmentSchema,
} from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { VirtualHostSchema } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import { RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';

export interface ConformanceKind {
  nameOf(value: Uint8Array): string;
  buildMinimalResource(name: string): Uint8Array;
  /** Returns a message with the same name and, for each revision, other content. */
  buildChangedResource(value: Uint8Array, revision: number): Uint8Array;
}

function kindOf<Desc extends DescMessage>(
  schema: Desc,
  nameOf: (message: MessageShape<Desc>) => string,
  bareMessage: (name: string) => MessageShape<Desc>,
  change: (message: MessageShape<Desc>, revision: number) => void,
): ConformanceKind {
  return {
    nameOf: (value) => nameOf(fromBinary(schema, value)),
    buildMinimalResource: (name) => toBinary(schema, bareMessage(name)),
    buildChangedResource(value, revision) {
      const message = fromBinary(schema, value);
      change(message, revision);
      return toBinary(schema, message);
    },
  };
}

export const conformanceKinds: ReadonlyMap<string, ConformanceKind> = new Map([
  [
    listenerType,
    kindOf(
      ListenerSchema,
      ({ name }) => name,
      (name) => create(ListenerSchema, { name }),
      (listener, revision) => {
        listener.statPrefix = `revision-${revision}`;
      },
    ),
  ],
  [
    clusterType,
    kindOf(
      ClusterSchema,
      ({ name }) => name,
      (name) => create(ClusterSchema, { name }),
      (cluster, revision) => {
        cluster.altStatName = `revision-${revision}`;
      },
    ),
  ],
  [
    routeType,
    kindOf(
      RouteConfigurationSchema,
      ({ name }) => name,
      (name) => create(RouteConfigurationSchema, { name }),
      (routes, revision) => {
        routes.virtualHosts = [create(VirtualHostSchema, { name: `revision-${revision}`, domains: ['*'] })];
      },
    ),
  ],
  [
    endpointType,
    kindOf(
      ClusterLoadAssignmentSchema,
      ({ clusterName }) => clusterName,
      (clusterName) => create(ClusterLoadAssignmentSchema, { clusterName }),
      (assignment, revision) => {
        assignment.policy = create(ClusterLoadAssignment_PolicySchema, { overprovisioningFactor: 100 + revision });
      },
    ),
  ],
]);
