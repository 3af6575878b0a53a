/**
 * Listeners that an Envoy was sent and does not have, because it refused them. An Envoy is not ready while it lacks one that it refused
 * at its start. A listener that was refused later does not count: what Envoy has serves on, and one mistake of many tenants takes no
 * gateway out of service. Nor does one count that the Envoy before it did without as well. Where ports of the application were named, an
 * Envoy that was never seen to serve one of them is not ready either.
 */
import type { EnvoyResponded, RefusedListener } from '../status-protocol.ts';

export interface KnownListeners {
  /** Listeners that the Envoy has lacked from its start on. */
  readonly lacking: readonly RefusedListener[];
  /** All that the Envoy refuses now, and was found not to lack from its start. */
  readonly tolerated: readonly string[];
  /** What was tolerated of the Envoy before it. */
  readonly toleratedBefore: readonly string[];
  /** The Envoy was seen to serve one of the application's ports: once is enough, as listeners come and go with services. */
  readonly servedApplication: boolean;
}

export const noListenersKnown: KnownListeners = {
  lacking: [],
  tolerated: [],
  toleratedBefore: [],
  servedApplication: false,
};

/** Another Envoy serves. What the one before had done without is not held against it. */
export function listenersOfSuccessor({ tolerated }: KnownListeners): KnownListeners {
  return { ...noListenersKnown, toleratedBefore: tolerated };
}

/** After the first look at an Envoy that serves. */
export function afterFirstCheck(known: KnownListeners, refused: readonly RefusedListener[]): KnownListeners {
  const toleratedNames = new Set(known.toleratedBefore);
  return { ...known, ...partitionListeners(refused, ({ name }) => !toleratedNames.has(name)) };
}

/** After any further one: what it did not lack then, it never lacks from its start. */
export function afterLaterCheck(known: KnownListeners, refused: readonly RefusedListener[]): KnownListeners {
  const lacked = new Set(known.lacking.map(({ name }) => name));
  return { ...known, ...partitionListeners(refused, ({ name }) => lacked.has(name)) };
}

/** After any word of its own: a port that answers says nothing of the application. */
export function afterResponse(known: KnownListeners, { by, live, unserved }: EnvoyResponded): KnownListeners {
  return by === 'admin' && live && unserved === '' ? { ...known, servedApplication: true } : known;
}

function partitionListeners(refused: readonly RefusedListener[], isLacked: (listener: RefusedListener) => boolean) {
  const tolerated = refused.filter((listener) => !isLacked(listener)).map(({ name }) => name);
  return { lacking: refused.filter(isLacked), tolerated };
}

/** Words for people: three of the listeners, and how many more. */
export function formatLackingListeners(lacking: readonly RefusedListener[]): string {
  const shown = lacking.slice(0, 3).map(({ name, why }) => (why === '' ? name : `${name}: ${why}`));
  return `${shown.join('; ')}${lacking.length > 3 ? `, and ${lacking.length - 3} more` : ''}`;
}
