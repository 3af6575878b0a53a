/** What a control plane has not sent to a proxy yet, and what it waits for: `/debug/proxyz`. */
import { isObject } from '../../runtime/json-object.ts';

/** One type of resource of which the proxy does not have the newest. */
export interface PendingType {
  /** `route.v3.RouteConfiguration`. */
  readonly type: string;
  readonly waitsFor: string;
}

/** @param proxies the JSON of `/debug/proxyz`; of anything else nothing is pending */
export function pendingTypes(proxies: unknown): readonly PendingType[] {
  if (!Array.isArray(proxies)) return [];
  return proxies
    .flatMap((proxy): unknown[] => (isObject(proxy) && Array.isArray(proxy.types) ? proxy.types : []))
    .flatMap((one): PendingType[] => {
      if (!isObject(one) || typeof one.type !== 'string' || typeof one.pending !== 'string') return [];
      return [{ type: one.type, waitsFor: one.pending }];
    });
}

/** A line for each type. */
export function pendingText(pending: readonly PendingType[]): string {
  return pending.map(({ type, waitsFor }) => `pending       ${type}: waits for ${waitsFor}\n`).join('');
}
