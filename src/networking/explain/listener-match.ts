import type { Address } from '../../gen/envoy/config/core/v3/address_pb.ts';
import { TrafficDirection } from '../../gen/envoy/config/core/v3/base_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { isLoopback } from '../../runtime/addresses/loopback.ts';
import { isUnspecified } from '../../runtime/addresses/unspecified-address.ts';
import type { Question } from './question.ts';

export interface FoundListener {
  readonly listener: Listener;
  /** The listener that received the redirected connection first. Absent if the client connected to the proxy's own port. */
  readonly firstListener?: Listener;
  readonly isRedirected: boolean;
}

interface ConnectionTarget {
  readonly address: string;
  readonly port: number;
}

/**
 * A redirected connection first reaches the listener with `use_original_dst` or an original-destination filter. With `use_original_dst`, this
 * listener passes the connection on.
 */
export function listenerOf(listeners: readonly Listener[], question: Question): FoundListener | undefined {
  const { destination, direction } = question;
  const expectedDirection = direction === 'inbound' ? TrafficDirection.INBOUND : TrafficDirection.OUTBOUND;
  const directionListeners = listeners.filter(
    ({ trafficDirection: listenerDirection }) =>
      listenerDirection === expectedDirection || listenerDirection === TrafficDirection.UNSPECIFIED,
  );
  const boundListeners = directionListeners.filter(({ bindToPort }) => bindToPort !== false);
  const directListener = listenerAt(boundListeners, destination);
  if (directListener !== undefined) return { listener: directListener, isRedirected: false };
  const redirectListener = boundListeners.find(acceptsRedirectedConnections);
  if (redirectListener === undefined) return undefined;
  if (!redirectListener.useOriginalDst) return { listener: redirectListener, isRedirected: true };
  const destinationListener = listenerAt(
    directionListeners.filter((listener) => listener !== redirectListener),
    destination,
  );
  return {
    listener: destinationListener ?? redirectListener,
    ...(destinationListener && { firstListener: redirectListener }),
    isRedirected: true,
  };
}

function acceptsRedirectedConnections({ useOriginalDst, listenerFilters }: Listener): boolean {
  return useOriginalDst === true || listenerFilters.some(({ name }) => name === 'envoy.filters.listener.original_dst');
}

/** A listener of the exact address precedes one of the wildcard address. */
function listenerAt(listeners: readonly Listener[], { address, port }: Question['destination']): Listener | undefined {
  const findListener = (matches: (listenerTarget: ConnectionTarget) => boolean): Listener | undefined =>
    listeners.find(
      (listener) =>
        listener.udpListenerConfig === undefined &&
        targetsOf(listener).some((listenerTarget) => listenerTarget.port === port && matches(listenerTarget)),
    );
  return (
    findListener((listenerPlace) => listenerPlace.address === address) ??
    findListener((listenerPlace) => isUnspecified(listenerPlace.address)) ??
    // If the question has no address, assumes a listener on loopback.
    (address === undefined ? findListener((listenerPlace) => isLoopback(listenerPlace.address)) : undefined)
  );
}

function targetsOf({ address, additionalAddresses }: Listener): readonly ConnectionTarget[] {
  return [address, ...additionalAddresses.map((additionalAddress) => additionalAddress.address)].flatMap(
    targetsOfAddress,
  );
}

function targetsOfAddress(address: Address | undefined): readonly ConnectionTarget[] {
  if (address?.address.case !== 'socketAddress') return [];
  const { address: ip, portSpecifier } = address.address.value;
  return portSpecifier.case === 'portValue' ? [{ address: ip, port: portSpecifier.value }] : [];
}
