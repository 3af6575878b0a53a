/** The `istio` filter metadata, which telemetry and EnvoyFilters read from resources. */
import { create, type JsonObject } from '@bufbuild/protobuf';
import { type Metadata, MetadataSchema } from '../../gen/envoy/config/core/v3/base_pb.ts';
import type { Service } from '../../model/services/service.ts';

export function istioMetadata(fields: JsonObject): Metadata {
  return create(MetadataSchema, { filterMetadata: { istio: fields } });
}

/** Name of a service in metadata: the object's name for a Kubernetes service, the host for others. */
export function serviceMetadata(service: Service): JsonObject {
  const name = service.registry === 'Kubernetes' ? service.origin.name : service.hostname;
  return { host: service.hostname, name, namespace: service.namespace };
}
