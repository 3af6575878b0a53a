import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { originsOf, withOrigins } from '../inputs/message-origin.ts';
import { isUnboundOption, unboundOption } from '../listeners/unbound.ts';
import { shallowCopy } from './merge-messages.ts';

/**
 * Adds or removes the socket option of unbound listeners (listeners/unbound.ts). Internal listeners are unchanged, because Envoy rejects their socket
 * options.
 */
export function withBindingMark(listener: Listener): Listener {
  if (listener.listenerSpecifier.case === 'internalListener') return listener;
  const bindsToPort = (listener.bindToPort ?? true) && (listener.deprecatedV1?.bindToPort ?? true);
  const otherOptions = listener.socketOptions.filter((option) => !isUnboundOption(option));
  const isMarkedUnbound = otherOptions.length < listener.socketOptions.length;
  if (isMarkedUnbound !== bindsToPort) return listener;
  const result: Listener = shallowCopy(listener);
  result.socketOptions = bindsToPort ? otherOptions : [...otherOptions, unboundOption];
  return withOrigins(result, originsOf(listener));
}
