/** Patches may change whether a listener is bound; Envoy must see that it is another one then (listeners/unbound.ts). */
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { originsOf, withOrigins } from '../inputs/message-origin.ts';
import { isUnboundOption, unboundOption } from '../listeners/unbound.ts';
import { shallowCopy } from './merge-messages.ts';

/**
 * With the socket option of unbound listeners, or without it. The very same listener if it is right already, or internal:
 * those have no sockets, and Envoy refuses socket options of them.
 */
export function withBindingShown(listener: Listener): Listener {
  if (listener.listenerSpecifier.case === 'internalListener') return listener;
  const isBound = (listener.bindToPort ?? true) && (listener.deprecatedV1?.bindToPort ?? true);
  const others = listener.socketOptions.filter((option) => !isUnboundOption(option));
  const isShown = others.length < listener.socketOptions.length;
  if (isShown !== isBound) return listener;
  const result: Listener = shallowCopy(listener);
  result.socketOptions = isBound ? others : [...others, unboundOption];
  return withOrigins(result, originsOf(listener));
}
