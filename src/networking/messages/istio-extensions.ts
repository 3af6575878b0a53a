/**
 * Extensions that only the mesh's own builds of Envoy have: `istio.metadata_exchange`, `istio.alpn`, `istio.stats`. A
 * stock Envoy refuses a listener with one of them, so they are generated for a proxy only when its metadata says
 * `ISTIO_EXTENSIONS=true`, or the mesh says so for all (`defaultConfig.proxyMetadata.ISTIO_META_ISTIO_EXTENSIONS`).
 */
import { create, type JsonObject } from '@bufbuild/protobuf';
import { type Filter, FilterSchema } from '../../gen/envoy/config/cluster/v3/filter_pb.ts';
import { TypedStructSchema } from '../../gen/udpa/type/v1/typed_struct_pb.ts';
import { booleanOf } from '../../model/fields/go-boolean.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { type TypedExtension, typedExtension } from './any.ts';

export function hasIstioExtensions({ metadata }: Pick<ProxyShape, 'metadata'>, { defaultConfig }: MeshConfig): boolean {
  const said = metadata.ISTIO_EXTENSIONS ?? defaultConfig.proxyMetadata.ISTIO_META_ISTIO_EXTENSIONS;
  return typeof said === 'string' && booleanOf(said) === true;
}

/** An extension whose message is none of Envoy's API: its fields as they are, under the message's name. */
export function istioExtension(name: string, type: string, value: JsonObject = {}): TypedExtension {
  return typedExtension(name, TypedStructSchema, { typeUrl: `type.googleapis.com/${type}`, value });
}

/** Counts as the mesh does. Beyond clients, a name in the host header alone is not believed to be a service's. */
export const istioStats = {
  outbound: stats({}),
  inbound: stats({ disable_host_header_fallback: true }),
  gateway: stats({ disable_host_header_fallback: true }),
};

function stats(settings: JsonObject): TypedExtension {
  return istioExtension('istio.stats', 'stats.PluginConfig', settings);
}

const exchange = {
  name: 'istio.metadata_exchange',
  type: 'envoy.tcp.metadataexchange.config.MetadataExchange',
  settings: { enable_discovery: true, protocol: 'istio-peer-exchange' },
};

/** Says on a connection who the workload is, and hears who the other one is, before the bytes of the application. */
export function peerExchange(): TypedExtension {
  return istioExtension(exchange.name, exchange.type, exchange.settings);
}

/** The same at the other end: of what a cluster's connections go through. */
export function metadataExchange(shape: Pick<ProxyShape, 'metadata'>, mesh: MeshConfig): Filter[] {
  if (!hasIstioExtensions(shape, mesh)) return [];
  const { name, configType } = peerExchange();
  return [create(FilterSchema, { name, typedConfig: configType.value })];
}
