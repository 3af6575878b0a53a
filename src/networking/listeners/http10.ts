/** Whether HTTP/1.0 is accepted. Some applications need it; rejecting it is safer. */
import type { ProxyContext } from '../inputs/connection-context.ts';

/** PILOT_HTTP10 enables it for all proxies, metadata `HTTP10` for one. */
export function acceptsHttp10({ shape, push }: Pick<ProxyContext, 'shape' | 'push'>): boolean {
  return push.features.http10 || shape.metadata.HTTP10 === '1';
}
