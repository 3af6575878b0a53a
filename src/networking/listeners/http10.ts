import type { ProxyContext } from '../inputs/connection-context.ts';

/** PILOT_HTTP10 enables HTTP/1.0 for all proxies, metadata `HTTP10` for one proxy. */
export function acceptsHttp10({ shape, push }: Pick<ProxyContext, 'shape' | 'push'>): boolean {
  return push.features.http10 || shape.metadata.HTTP10 === '1';
}
