/**
 * Builds extensions of Istio's Envoy builds: `istio.metadata_exchange`, `istio.alpn`, `istio.stats`. Stock Envoy rejects listeners that contain them,
 * so they are generated only for proxies with the metadata `ISTIO_EXTENSIONS=true`, or for all if the mesh sets
 * `defaultConfig.proxyMetadata.ISTIO_META_ISTIO_EXTENSIONS`.
 */
import { create, type JsonObject } from '@bufbuild/protobuf';
import { type Filter, FilterSchema } from '../../gen/envoy/config/cluster/v3/filter_pb.ts';
import { TypedStructSchema } from '../../gen/udpa/type/v1/typed_struct_pb.ts';
import { booleanOf } from '../../model/fields/go-boolean.ts';
import type { MeshConfig } from '../../model/mesh/mesh-config.ts';
import type { ProxyShape } from '../../model/proxy/proxy-shape.ts';
import { type TypedExtension, typedExtension } from './any.ts';

export function hasIstioExtensions({ metadata }: Pick<ProxyShape, 'metadata'>, { defaultConfig }: MeshConfig): boolean {
  const setting = metadata.ISTIO_EXTENSIONS ?? defaultConfig.proxyMetadata.ISTIO_META_ISTIO_EXTENSIONS;
  return typeof setting === 'string' && booleanOf(setting) === true;
}

export function istioExtension(name: string, type: string, value: JsonObject = {}): TypedExtension {
  return typedExtension(name, TypedStructSchema, { typeUrl: `type.googleapis.com/${type}`, value });
}

/** Servers do not derive their service from the host header. */
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

/** Exchanges workload metadata with the peer before the application's first bytes. */
export function peerExchange(): TypedExtension {
  return istioExtension(exchange.name, exchange.type, exchange.settings);
}

/** The upstream counterpart of {@link peerExchange}. */
export function metadataExchange(shape: Pick<ProxyShape, 'metadata'>, mesh: MeshConfig): Filter[] {
  if (!hasIstioExtensions(shape, mesh)) return [];
  const { name, configType } = peerExchange();
  return [create(FilterSchema, { name, typedConfig: configType.value })];
}
