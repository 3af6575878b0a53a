/** Whether the pod's programs use gRPC without a proxy. */
import { isProxyless } from '../../model/node/parse-node.ts';
import type { ProxyOptions } from './options.ts';

/** Whether gRPC programs of this pod are their own proxies: ISTIO_META_GENERATOR=grpc, of the environment or `proxyMetadata`. */
export function servesProxyless({ env, config }: Pick<ProxyOptions, 'env' | 'config'>): boolean {
  const name = 'ISTIO_META_GENERATOR';
  return isProxyless({ GENERATOR: env[name] ?? config.proxyMetadata[name] });
}
