/**
 * Extensions that only Istio's Envoy builds have: `istio.metadata_exchange`, `istio.alpn`, `istio.stats`. A stock Envoy
 * rejects a listener with one of them, so they are only generated for a proxy whose metadata contains
 * `ISTIO_EXTENSIONS=true`, or for all if the mesh sets it (`defaultConfig.proxyMetadata.ISTIO_META_ISTIO_EXTENSIONS`).
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

/** An extension whose message is not in Envoy's API, as a TypedStruct. */
export function istioExtension(name: string, type: string, value: JsonObject = {}): TypedExtension {
  return typedExtension(name, TypedStructSchema, { typeUrl: `type.googleapis.com/${type}`, value });
}

/** Standard metrics. Servers do not trust a host header to identify their service. */
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

/** Exchanges workload metadata with the peer before the application's bytes. */
export function peerExchange(): TypedExtension {
  return istioExtension(exchange.name, exchange.type, exchange.settings);
}

/** The other end of {@link peerExchange}, for a cluster's connections. */
export function metadataExchange(shape: Pick<ProxyShape, 'metadata'>, mesh: MeshConfig): Filter[] {
  if (!hasIstioExtensions(shape, mesh)) return [];
  const { name, configType } = peerExchange();
  return [create(FilterSchema, { name, typedConfig: configType.value })];
}
