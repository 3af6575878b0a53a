/** Metadata `istio` of resources, which telemetry and EnvoyFilters read. */
import { create, type JsonObject } from '@bufbuild/protobuf';
import { type Metadata, MetadataSchema } from '../../gen/envoy/config/core/v3/base_pb.ts';
import type { Service } from '../../model/services/service.ts';

export function istioMetadata(fields: JsonObject): Metadata {
  return create(MetadataSchema, { filterMetadata: { istio: fields } });
}

/** The name is that of the object for a Kubernetes Service, and the host for other services. */
export function serviceMetadata(service: Service): JsonObject {
  const name = service.registry === 'Kubernetes' ? service.origin.name : service.hostname;
  return { host: service.hostname, name, namespace: service.namespace };
}
