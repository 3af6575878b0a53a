/** What a proxy was given, in the form of Envoy's own `/config_dump` (spec/discovery.md §9.1). */
import { create, toJson } from '@bufbuild/protobuf';
import { type Any, anyPack, type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  BootstrapConfigDumpSchema,
  ConfigDumpSchema,
  SecretsConfigDumpSchema,
} from '../../gen/envoy/admin/v3/config_dump_pb.ts';
import {
  ClustersConfigDumpSchema,
  EndpointsConfigDumpSchema,
  ListenersConfigDumpSchema,
  RoutesConfigDumpSchema,
  ScopedRoutesConfigDumpSchema,
} from '../../gen/envoy/admin/v3/config_dump_shared_pb.ts';
import {
  clusterType,
  endpointType,
  generators,
  listenerType,
  type Resource,
  routeType,
} from '../../networking/index.ts';
import type { ConnectionView } from '../ads/ads-observer.ts';
import type { MeshNode } from '../push/mesh-resources.ts';
import { typeRegistry } from './type-registry.ts';

/** Names of types in `?types=`. */
const shortNames: Readonly<Record<string, string>> = {
  cds: clusterType,
  lds: listenerType,
  rds: routeType,
  eds: endpointType,
};

/** One part of the dump, made from packed resources. */
type Section = (
  resources: readonly { name: string; packed: Any }[],
  version: string,
  lastUpdated: Timestamp | undefined,
) => Any;

const sections: readonly (readonly [string, Section])[] = [
  [
    clusterType,
    (resources, versionInfo, lastUpdated) =>
      anyPack(
        ClustersConfigDumpSchema,
        create(ClustersConfigDumpSchema, {
          versionInfo,
          dynamicActiveClusters: resources.map(({ packed }) => ({
            versionInfo,
            cluster: packed,
            ...(lastUpdated && { lastUpdated }),
          })),
        }),
      ),
  ],
  [
    endpointType,
    (resources, versionInfo, lastUpdated) =>
      anyPack(
        EndpointsConfigDumpSchema,
        create(EndpointsConfigDumpSchema, {
          dynamicEndpointConfigs: resources.map(({ packed }) => ({
            versionInfo,
            endpointConfig: packed,
            ...(lastUpdated && { lastUpdated }),
          })),
        }),
      ),
  ],
  [
    listenerType,
    (resources, versionInfo, lastUpdated) =>
      anyPack(
        ListenersConfigDumpSchema,
        create(ListenersConfigDumpSchema, {
          versionInfo,
          dynamicListeners: resources.map(({ name, packed }) => ({
            name,
            activeState: { versionInfo, listener: packed, ...(lastUpdated && { lastUpdated }) },
          })),
        }),
      ),
  ],
  [
    routeType,
    (resources, versionInfo, lastUpdated) =>
      anyPack(
        RoutesConfigDumpSchema,
        create(RoutesConfigDumpSchema, {
          dynamicRouteConfigs: resources.map(({ packed }) => ({
            versionInfo,
            routeConfig: packed,
            ...(lastUpdated && { lastUpdated }),
          })),
        }),
      ),
  ],
];

/**
 * @param query `types` chooses parts (`cds,lds,rds,eds`); `include_eds` adds endpoints, which are left out otherwise.
 */
export function configDump(connection: ConnectionView, node: MeshNode, query: URLSearchParams): object {
  const asked = query.get('types');
  const withEndpoints = query.get('include_eds') !== null && query.get('include_eds') !== 'false';
  const wanted = (typeUrl: string): boolean =>
    asked === null
      ? typeUrl !== endpointType || withEndpoints
      : asked.split(',').some((name) => shortNames[name.trim()] === typeUrl);
  const parts = sections
    .filter(([typeUrl]) => wanted(typeUrl))
    .map(([typeUrl, section]) => sectionOf(typeUrl, section, connection, node));
  // Envoy's own has these parts as well; tools look for them.
  const around: [Any[], Any[]] =
    asked === null
      ? [
          [anyPack(BootstrapConfigDumpSchema, create(BootstrapConfigDumpSchema))],
          [
            anyPack(ScopedRoutesConfigDumpSchema, create(ScopedRoutesConfigDumpSchema)),
            anyPack(SecretsConfigDumpSchema, create(SecretsConfigDumpSchema)),
          ],
        ]
      : [[], []];
  return asJson([...around[0], ...parts, ...around[1]]);
}

/** The endpoints alone. */
export function endpointDump(connection: ConnectionView, node: MeshNode): object {
  const [typeUrl, section] = sections.find(([type]) => type === endpointType)!;
  return asJson([sectionOf(typeUrl, section, connection, node)]);
}

function sectionOf(typeUrl: string, section: Section, { watches }: ConnectionView, node: MeshNode): Any {
  const watch = watches.find((candidate) => candidate.typeUrl === typeUrl);
  const lastUpdated = watch?.sentAt === undefined ? undefined : timestampFromMs(Date.parse(watch.sentAt));
  const resources = resourcesOf(typeUrl, node, watch?.names ?? []);
  const packed = resources.map(({ name, schema, message }) => ({ name, packed: anyPack(schema, message) }));
  return section(packed, node.context.version, lastUpdated);
}

function resourcesOf(typeUrl: string, node: MeshNode, names: readonly string[]): readonly Resource[] {
  const generator = generators.get(typeUrl)!;
  return generator.scope === 'all'
    ? generator.build(node.view, node.context)
    : generator.build(node.view, node.context, names);
}

function asJson(configs: Any[]): object {
  const dump = create(ConfigDumpSchema, { configs });
  return toJson(ConfigDumpSchema, dump, { registry: typeRegistry, useProtoFieldName: true }) as object;
}
