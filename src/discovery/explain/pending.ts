/** Reads `/debug/proxyz`. */
import { isObject } from '../../runtime/json-object.ts';

export interface PendingType {
  /** Type URL without the common prefix, such as `route.v3.RouteConfiguration`. */
  readonly type: string;
  readonly waitsFor: string;
}

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
  /** Number of waits that the page does not list. */
  readonly moreWaits: number;
}

/** A proxy may keep a thousand clusters. */
const maxWaitLines = 20;

/** @param proxies JSON of `/debug/proxyz`; for any other value, nothing is pending */
export function pendingResources(proxies: unknown): PendingResources {
  if (!Array.isArray(proxies)) return { pending: [], waits: [], moreWaits: 0 };
  const types: readonly TypeJson[] = proxies
    .flatMap((proxy): unknown[] => (isObject(proxy) && Array.isArray(proxy.types) ? proxy.types : []))
    .flatMap((typeEntry) =>
      isObject(typeEntry) && typeof typeEntry.type === 'string' ? [{ ...typeEntry, type: typeEntry.type }] : [],
    );
  return {
    pending: types.flatMap(pendingOf),
    waits: types.flatMap(waitsOf),
    moreWaits: types.reduce((sum, { moreWaits }) => sum + (typeof moreWaits === 'number' ? moreWaits : 0), 0),
  };
}

type TypeJson = Readonly<Record<string, unknown>> & { readonly type: string };

function pendingOf({ type, pending }: TypeJson): PendingType[] {
  return typeof pending === 'string' ? [{ type, waitsFor: pending }] : [];
}

function waitsOf({ type, waits }: TypeJson): WaitingResource[] {
  if (!Array.isArray(waits)) return [];
  return waits.flatMap((waitEntry): WaitingResource[] => {
    if (!isObject(waitEntry)) return [];
    const { kind, name, why } = waitEntry;
    const isComplete = typeof kind === 'string' && typeof name === 'string' && typeof why === 'string';
    return isComplete ? [{ type, kind, name, why }] : [];
  });
}

export function pendingText({ pending, waits, moreWaits }: PendingResources): string {
  const labelledLine = (label: string, text: string): string => `${label.padEnd(13)} ${text}\n`;
  const types = pending.map(({ type, waitsFor }) => labelledLine('pending', `${type}: waits for ${waitsFor}`));
  const shownLines = waits.slice(0, maxWaitLines).map(({ kind, name, why }) => labelledLine(kind, `${name}: ${why}`));
  const omittedCount = waits.length - shownLines.length + moreWaits;
  const omittedLine = omittedCount === 0 ? '' : labelledLine('', `${omittedCount} more in /debug/proxyz?allWaits`);
  return [...types, ...shownLines, omittedLine].join('');
}
