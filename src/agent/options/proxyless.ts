import { isProxyless } from '../../model/node/parse-node.ts';
import type { ProxyOptions } from './options.ts';

export function servesProxyless({ env, config }: Pick<ProxyOptions, 'env' | 'config'>): boolean {
  const name = 'ISTIO_META_GENERATOR';
  return isProxyless({ GENERATOR: env[name] ?? config.proxyMetadata[name] });
}
