/** Reads `config_dump` JSON of Envoy or a control plane. */
import { type DescMessage, fromJson, type JsonValue, type MessageShape, type Registry } from '@bufbuild/protobuf';
import { ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { ClusterLoadAssignmentSchema } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.ts';
import { ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.ts';
import type { ProxyConfiguration } from '../../networking/explain/proxy-configuration.ts';
import { messageOf } from '../../runtime/errors.ts';
import { isObject } from '../../runtime/json-object.ts';
import { typeRegistry } from '../monitor/debug/type-registry.ts';

export interface DumpedConfiguration extends ProxyConfiguration {
  readonly omittedParts: readonly string[];
}

const typePrefix = 'type.googleapis.com/';

/** @throws Error if the value is not a dump */
export function parseConfigDump(dump: unknown): DumpedConfiguration {
  const sections = isObject(dump) && Array.isArray(dump.configs) ? dump.configs : undefined;
  if (sections === undefined) throw new Error('configs must be a list');
  const omittedTypes: string[] = [];
  const resourcesOfSchema = <Desc extends DescMessage>(schema: Desc): MessageShape<Desc>[] =>
    resourcesOf(sections, `${typePrefix}${schema.typeName}`).flatMap((json) => {
      try {
        return [
          fromJson(schema, omitUnknownTypes(json, typeRegistry()), {
            registry: typeRegistry(),
            ignoreUnknownFields: true,
          }),
        ];
      } catch (error) {
        const { name, cluster_name: clusterName } = json as { name?: string; cluster_name?: string };
        omittedTypes.push(`${schema.typeName} ${name ?? clusterName ?? ''}: ${messageOf(error)}`);
        return [];
      }
    });
  return {
    listeners: resourcesOfSchema(ListenerSchema),
    routes: new Map(resourcesOfSchema(RouteConfigurationSchema).map((routes) => [routes.name, routes])),
    clusters: new Map(resourcesOfSchema(ClusterSchema).map((cluster) => [cluster.name, cluster])),
    endpoints: new Map(
      resourcesOfSchema(ClusterLoadAssignmentSchema).map((assignment) => [assignment.clusterName, assignment]),
    ),
    omittedParts: omittedTypes,
  };
}

/** Resources can be packed in Any at any depth except within another resource. */
function resourcesOf(value: unknown, type: string): JsonValue[] {
  if (Array.isArray(value)) return value.flatMap((item) => resourcesOf(item, type));
  if (!isObject(value)) return [];
  if (value['@type'] === type) {
    const { '@type': _, ...message } = value;
    return [message as JsonValue];
  }
  // Skips warming, draining and failed resources, because they do not serve requests.
  return Object.entries(value).flatMap(([key, item]) =>
    /^(warming_state|draining_state|error_state|dynamic_warming_clusters)$/.test(key) ? [] : resourcesOf(item, type),
  );
}

/** Extensions of unknown types do not affect routing, so empty ones replace them. */
function omitUnknownTypes(value: JsonValue, registry: Registry): JsonValue {
  if (Array.isArray(value)) return value.map((item) => omitUnknownTypes(item, registry));
  if (!isObject(value)) return value;
  const type = value['@type'];
  if (typeof type === 'string' && registry.getMessage(type.replace(typePrefix, '')) === undefined) {
    return { '@type': `${typePrefix}google.protobuf.Empty` };
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, omitUnknownTypes(item as JsonValue, registry)]),
  );
}
