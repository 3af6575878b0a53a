/**
 * Envoy is not ready while it lacks a listener that it rejected at its start. Listeners rejected later do not count, because their previous version
 * serves and one tenant's error must not make a gateway unready. Neither do those that the previous Envoy lacked.
 */
import type { EnvoyResponded, RefusedListener } from '../status-protocol.ts';

export interface KnownListeners {
  /** Listeners that Envoy rejected at its start and still lacks. */
  readonly lacking: readonly RefusedListener[];
  /** These rejected listeners do not affect readiness. */
  readonly tolerated: readonly string[];
  readonly toleratedBefore: readonly string[];
  /** Whether Envoy has served an application port. Once is enough, because listeners change with services. */
  readonly servedApplication: boolean;
}

export const initialListeners: KnownListeners = {
  lacking: [],
  tolerated: [],
  toleratedBefore: [],
  servedApplication: false,
};

/** The next Envoy may lack the same listeners. */
export function listenersOfSuccessor({ tolerated }: KnownListeners): KnownListeners {
  return { ...initialListeners, toleratedBefore: tolerated };
}

export function recordFirstCheck(
  knownListeners: KnownListeners,
  rejectedListeners: readonly RefusedListener[],
): KnownListeners {
  const toleratedNames = new Set(knownListeners.toleratedBefore);
  return { ...knownListeners, ...partitionListeners(rejectedListeners, ({ name }) => !toleratedNames.has(name)) };
}

/** A later check can only shorten the list of lacking listeners: other rejected listeners do not affect readiness. */
export function recordLaterCheck(
  knownListeners: KnownListeners,
  rejectedListeners: readonly RefusedListener[],
): KnownListeners {
  const lackedNames = new Set(knownListeners.lacking.map(({ name }) => name));
  return { ...knownListeners, ...partitionListeners(rejectedListeners, ({ name }) => lackedNames.has(name)) };
}

/** A probe of a port does not check application ports. */
export function recordEnvoyResponse(
  knownListeners: KnownListeners,
  { by, live, unserved }: EnvoyResponded,
): KnownListeners {
  return by === 'admin' && live && unserved === '' ? { ...knownListeners, servedApplication: true } : knownListeners;
}

function partitionListeners(
  rejectedListeners: readonly RefusedListener[],
  isLackedListener: (listener: RefusedListener) => boolean,
) {
  const toleratedNames = rejectedListeners.filter((listener) => !isLackedListener(listener)).map(({ name }) => name);
  return { lacking: rejectedListeners.filter(isLackedListener), tolerated: toleratedNames };
}

export function formatLackingListeners(lackingListeners: readonly RefusedListener[]): string {
  const listenerTexts = lackingListeners
    .slice(0, 3)
    .map(({ name, reason }) => (reason === '' ? name : `${name}: ${reason}`));
  return `${listenerTexts.join('; ')}${lackingListeners.length > 3 ? `, and ${lackingListeners.length - 3} more` : ''}`;
}
