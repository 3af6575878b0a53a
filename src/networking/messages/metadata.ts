/** The `istio` filter metadata that telemetry and EnvoyFilters read off generated resources. */
import { create, type JsonObject } from '@bufbuild/protobuf';
import { type Metadata, MetadataSchema } from '../../gen/envoy/config/core/v3/base_pb.ts';
import type { Service } from '../../model/services/service.ts';

export function istioMetadata(fields: JsonObject): Metadata {
  return create(MetadataSchema, { filterMetadata: { istio: fields } });
}

/** A service as metadata has it: Kubernetes services by their object's name, others by their host. */
export function serviceMetadata(service: Service): JsonObject {
  const name = service.registry === 'Kubernetes' ? service.origin.name : service.hostname;
  return { host: service.hostname, name, namespace: service.namespace };
}
