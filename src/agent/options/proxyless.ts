import { isProxyless } from '../../model/node/parse-node.ts';
import type { ProxyOptions } from './options.ts';

/** Whether programs of this pod use proxyless gRPC: ISTIO_META_GENERATOR=grpc of the environment or `proxyMetadata`. */
export function servesProxyless({ env, config }: Pick<ProxyOptions, 'env' | 'config'>): boolean {
  const name = 'ISTIO_META_GENERATOR';
  return isProxyless({ GENERATOR: env[name] ?? config.proxyMetadata[name] });
}
