import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { type Any, AnySchema } from '@bufbuild/protobuf/wkt';
import { ClusterSchema } from '../../src/gen/envoy/config/cluster/v3/cluster_pb.ts';
import { ClusterLoadAssignmentSchema } from '../../src/gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { ListenerSchema } from '../../src/gen/envoy/config/listener/v3/listener_pb.ts';
import { RouteConfigurationSchema } from '../../src/gen/envoy/config/route/v3/route_pb.ts';
import { type TypeName, typeUrls } from '../ads-client.ts';

export function resourceName({ typeUrl, value }: Any): string {
  switch (typeUrl) {
    case typeUrls.CDS:
      return fromBinary(ClusterSchema, value).name;
    case typeUrls.LDS:
      return fromBinary(ListenerSchema, value).name;
    case typeUrls.RDS:
      return fromBinary(RouteConfigurationSchema, value).name;
    case typeUrls.EDS:
      return fromBinary(ClusterLoadAssignmentSchema, value).clusterName;
    default:
      throw new Error(`no such type: ${typeUrl}`);
  }
}

/** A resource that only has a name, as a harness sends to the adapter. */
export function bareResource(type: TypeName, name: string): Any {
  const typeUrl = typeUrls[type];
  switch (type) {
    case 'CDS':
      return create(AnySchema, { typeUrl, value: toBinary(ClusterSchema, create(ClusterSchema, { name })) });
    case 'LDS':
      return create(AnySchema, { typeUrl, value: toBinary(ListenerSchema, create(ListenerSchema, { name })) });
    case 'RDS':
      return create(AnySchema, {
        typeUrl,
        value: toBinary(RouteConfigurationSchema, create(RouteConfigurationSchema, { name })),
      });
    case 'EDS':
      return create(AnySchema, {
        typeUrl,
        value: toBinary(ClusterLoadAssignmentSchema, create(ClusterLoadAssignmentSchema, { clusterName: name })),
      });
    default:
      throw new Error(`no such type: ${type}`);
  }
}
