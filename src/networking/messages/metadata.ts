/** Metadata `istio` of resources, which telemetry and EnvoyFilters read. */
import { create, type JsonObject } from '@bufbuild/protobuf';
import { type Metadata, MetadataSchema } from '../../gen/envoy/config/core/v3/base_pb.ts';
import type { Service } from '../../model/services/service.ts';

export function istioMetadata(fields: JsonObject): Metadata {
  return create(MetadataSchema, { filterMetadata: { istio: fields } });
}

/** The name of a Kubernetes service is that of its object, the name of other services is their host. */
export function serviceMetadata(service: Service): JsonObject {
  const name = service.registry === 'Kubernetes' ? service.origin.name : service.hostname;
  return { host: service.hostname, name, namespace: service.namespace };
}
