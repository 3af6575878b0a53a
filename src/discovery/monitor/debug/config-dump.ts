import { create, toJson } from '@bufbuild/protobuf';
import { type Any, AnySchema, anyPack, anyUnpack, type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import { extensionType, secretType } from '../../../../machines/discovery/xds/ads-types.ts';
import {
  BootstrapConfigDumpSchema,
  ConfigDumpSchema,
  SecretsConfigDumpSchema,
} from '../../../gen/envoy/admin/v3/config_dump_pb.ts';
import {
  ClustersConfigDumpSchema,
  EcdsConfigDumpSchema,
  EndpointsConfigDumpSchema,
  ListenersConfigDumpSchema,
  RoutesConfigDumpSchema,
  ScopedRoutesConfigDumpSchema,
} from '../../../gen/envoy/admin/v3/config_dump_shared_pb.ts';
import { TypedExtensionConfigSchema } from '../../../gen/envoy/config/core/v3/extension_pb.ts';
import { WasmSchema as HttpWasmSchema } from '../../../gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.ts';
import { WasmSchema as NetworkWasmSchema } from '../../../gen/envoy/extensions/filters/network/wasm/v3/wasm_pb.ts';
import { SecretSchema } from '../../../gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.ts';
import { pullSecretVariable } from '../../../networking/extensions/wasm-pull.ts';
import {
  clusterType,
  type EnvoyResource,
  endpointType,
  generators,
  listenerType,
  routeType,
} from '../../../networking/index.ts';
import { ownValue } from '../../../runtime/json-object.ts';
import type { MeshNode } from '../../push/mesh-resources.ts';
import type { ConnectionView } from '../../xds/ads-observer.ts';
import { typeRegistry } from './type-registry.ts';

/** Accepted values of `?types=`. */
const shortNames: Readonly<Record<string, string>> = {
  cds: clusterType,
  lds: listenerType,
  rds: routeType,
  eds: endpointType,
  sds: secretType,
  ecds: extensionType,
};

type DumpSection = (
  resources: readonly { name: string; packedMessage: Any }[],
  version: string,
  lastUpdated: Timestamp | undefined,
) => Any;

const sections: readonly (readonly [string, DumpSection])[] = [
  [
    clusterType,
    (resources, versionInfo, lastUpdated) =>
      anyPack(
        ClustersConfigDumpSchema,
        create(ClustersConfigDumpSchema, {
          versionInfo,
          dynamicActiveClusters: resources.map(({ packedMessage }) => ({
            versionInfo,
            cluster: packedMessage,
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
          dynamicEndpointConfigs: resources.map(({ packedMessage }) => ({
            versionInfo,
            endpointConfig: packedMessage,
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
          dynamicListeners: resources.map(({ name, packedMessage }) => ({
            name,
            activeState: { versionInfo, listener: packedMessage, ...(lastUpdated && { lastUpdated }) },
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
          dynamicRouteConfigs: resources.map(({ packedMessage }) => ({
            versionInfo,
            routeConfig: packedMessage,
            ...(lastUpdated && { lastUpdated }),
          })),
        }),
      ),
  ],
  [
    secretType,
    (resources, versionInfo, lastUpdated) =>
      anyPack(
        SecretsConfigDumpSchema,
        create(SecretsConfigDumpSchema, {
          dynamicActiveSecrets: resources.map(({ name, packedMessage }) => ({
            name,
            versionInfo,
            secret: redactKeys(packedMessage),
            ...(lastUpdated && { lastUpdated }),
          })),
        }),
      ),
  ],
  [
    extensionType,
    (resources, versionInfo, lastUpdated) =>
      anyPack(
        EcdsConfigDumpSchema,
        create(EcdsConfigDumpSchema, {
          ecdsFilters: resources.map(({ packedMessage }) => ({
            versionInfo,
            ecdsFilter: redactPullSecret(packedMessage),
            ...(lastUpdated && { lastUpdated }),
          })),
        }),
      ),
  ],
];

/** @param query `types` selects sections (`cds,lds,rds,eds,sds,ecds`); `include_eds` adds endpoints */
export function configDump(connection: ConnectionView, node: MeshNode, query: URLSearchParams): object {
  return asJson(configDumpParts(connection, node, query));
}

export function configDumpParts(connection: ConnectionView, node: MeshNode, query: URLSearchParams): Any[] {
  const typesParameter = query.get('types');
  const withEndpoints = query.get('include_eds') !== null && query.get('include_eds') !== 'false';
  const isRequested = (typeUrl: string): boolean =>
    typesParameter === null
      ? typeUrl !== endpointType || withEndpoints
      : typesParameter.split(',').some((name) => ownValue(shortNames, name.trim()) === typeUrl);
  const dumpSections = new Map(
    sections
      .filter(([typeUrl]) => isRequested(typeUrl))
      .map(([typeUrl, section]) => [typeUrl, sectionOf(typeUrl, section, connection, node)]),
  );
  if (typesParameter !== null) return [...dumpSections.values()];
  // Tools expect this section of Envoy's dump.
  const bootstrap = anyPack(BootstrapConfigDumpSchema, create(BootstrapConfigDumpSchema));
  const scopedRoutes = anyPack(ScopedRoutesConfigDumpSchema, create(ScopedRoutesConfigDumpSchema));
  const sectionTypes = [clusterType, endpointType, listenerType, 'scoped', routeType, secretType, extensionType];
  dumpSections.set('scoped', scopedRoutes);
  return [bootstrap, ...sectionTypes.flatMap((typeUrl) => dumpSections.get(typeUrl) ?? [])];
}

export function dumpOfType(typeUrl: string, connection: ConnectionView, node: MeshNode): object {
  const [, section] = sections.find(([type]) => type === typeUrl)!;
  return asJson([sectionOf(typeUrl, section, connection, node)]);
}

function sectionOf(typeUrl: string, section: DumpSection, { watches }: ConnectionView, node: MeshNode): Any {
  const watch = watches.find((candidate) => candidate.typeUrl === typeUrl);
  const lastUpdated = watch?.sentAt === undefined ? undefined : timestampFromMs(Date.parse(watch.sentAt));
  const resources = resourcesOf(typeUrl, node, watch?.names ?? []);
  const packedResources = resources.map(({ name, schema, message }) => ({
    name,
    packedMessage: anyPack(schema, message),
  }));
  return section(packedResources, node.context.version, lastUpdated);
}

function resourcesOf(typeUrl: string, node: MeshNode, names: readonly string[]): readonly EnvoyResource[] {
  const generator = generators.get(typeUrl);
  if (generator === undefined) return [];
  return generator.scope === 'all'
    ? generator.build(node.shape, node.context)
    : generator.build(node.shape, node.context, node.permittedNames(typeUrl, names));
}

const redactedSource = { specifier: { case: 'inlineString', value: '[redacted]' } } as const;

/** Certificates are not redacted. */
export function redactKeys(packedMessage: Any): Any {
  const secret = anyUnpack(packedMessage, SecretSchema);
  if (secret === undefined) return create(AnySchema, { typeUrl: packedMessage.typeUrl });
  const { name, type } = secret;
  if (type.case === 'validationContext') return packedMessage;
  if (type.case === 'tlsCertificate' && type.value.certificateChain !== undefined) {
    const value = { certificateChain: type.value.certificateChain, privateKey: redactedSource };
    return anyPack(SecretSchema, create(SecretSchema, { name, type: { case: 'tlsCertificate', value } }));
  }
  return anyPack(
    SecretSchema,
    create(SecretSchema, { name, type: { case: 'genericSecret', value: { secret: redactedSource } } }),
  );
}

export function redactPullSecret(packedMessage: Any): Any {
  const extension = anyUnpack(packedMessage, TypedExtensionConfigSchema);
  const typedConfig = extension?.typedConfig;
  for (const schema of [HttpWasmSchema, NetworkWasmSchema]) {
    const wasm = typedConfig && anyUnpack(typedConfig, schema);
    const vm = wasm?.config?.vm;
    const variables = vm?.case === 'vmConfig' ? vm.value.environmentVariables?.keyValues : undefined;
    if (extension === undefined || wasm === undefined || !variables?.[pullSecretVariable]) continue;
    variables[pullSecretVariable] = '[redacted]';
    return anyPack(TypedExtensionConfigSchema, { ...extension, typedConfig: anyPack(schema, wasm as never) });
  }
  return packedMessage;
}

function asJson(configs: Any[]): object {
  const dump = create(ConfigDumpSchema, { configs });
  return toJson(ConfigDumpSchema, dump, { registry: typeRegistry(), useProtoFieldName: true }) as object;
}
