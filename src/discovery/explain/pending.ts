/** What a control plane has not sent to a proxy yet, or keeps at it, and why: `/debug/proxyz`. */
import { isObject } from '../../runtime/json-object.ts';

/** One type of resource of which the proxy does not have the newest. */
export interface PendingType {
  /** `route.v3.RouteConfiguration`. */
  readonly type: string;
  readonly waitsFor: string;
}

/** One resource that is held back, or cluster that is kept, not usable yet or given up. */
export interface WaitingResource {
  readonly type: string;
  /** `held`, `warming`, `kept` or `given up`. */
  readonly kind: string;
  readonly name: string;
  readonly why: string;
}

export interface PendingResources {
  readonly pending: readonly PendingType[];
  readonly waits: readonly WaitingResource[];
}

/** Lines about single resources: a proxy may keep a thousand clusters. */
const maxWaitLines = 20;

/** @param proxies the JSON of `/debug/proxyz`; of anything else nothing is pending */
export function pendingResources(proxies: unknown): PendingResources {
  if (!Array.isArray(proxies)) return { pending: [], waits: [] };
  const types = proxies
    .flatMap((proxy): unknown[] => (isObject(proxy) && Array.isArray(proxy.types) ? proxy.types : []))
    .flatMap((one) => (isObject(one) && typeof one.type === 'string' ? [{ ...one, type: one.type }] : []));
  return { pending: types.flatMap(pendingOf), waits: types.flatMap(waitsOf) };
}

type TypeJson = Readonly<Record<string, unknown>> & { readonly type: string };

function pendingOf({ type, pending }: TypeJson): PendingType[] {
  return typeof pending === 'string' ? [{ type, waitsFor: pending }] : [];
}

function waitsOf({ type, waits }: TypeJson): WaitingResource[] {
  if (!Array.isArray(waits)) return [];
  return waits.flatMap((one): WaitingResource[] => {
    if (!isObject(one)) return [];
    const { kind, name, why } = one;
    const isComplete = typeof kind === 'string' && typeof name === 'string' && typeof why === 'string';
    return isComplete ? [{ type, kind, name, why }] : [];
  });
}

/** A line for each type, then one for each resource. */
export function pendingText({ pending, waits }: PendingResources): string {
  const line = (label: string, text: string): string => `${label.padEnd(13)} ${text}\n`;
  const types = pending.map(({ type, waitsFor }) => line('pending', `${type}: waits for ${waitsFor}`));
  const shown = waits.slice(0, maxWaitLines).map(({ kind, name, why }) => line(kind, `${name}: ${why}`));
  const left = waits.length - shown.length;
  const rest = left === 0 ? '' : line('', `${left} more in /debug/proxyz`);
  return [...types, ...shown, rest].join('');
}
