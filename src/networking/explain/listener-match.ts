/** Which listener takes a connection. */

import type { Address } from '../../gen/envoy/config/core/v3/address_pb.ts';
import { TrafficDirection } from '../../gen/envoy/config/core/v3/base_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import { isLoopback } from '../../runtime/addresses/loopback.ts';
import { isUnspecified } from '../../runtime/addresses/unspecified-address.ts';
import type { Question } from './question.ts';

export interface FoundListener {
  readonly listener: Listener;
  /** The connection was redirected to this one, which handed it over; absent: the proxy listens where the client connects. */
  readonly through?: Listener;
  /** The proxy knows where the client connected to from the system, since the connection was redirected. */
  readonly isRedirected: boolean;
}

interface Place {
  readonly address: string;
  readonly port: number;
}

/**
 * The listener that is bound where the connection goes. Else, where connections are redirected, the one that takes them
 * (`use_original_dst` or an original-destination filter) and hands them to the listener of their own destination.
 */
export function listenerOf(listeners: readonly Listener[], question: Question): FoundListener | undefined {
  const { destination, direction } = question;
  const wanted = direction === 'inbound' ? TrafficDirection.INBOUND : TrafficDirection.OUTBOUND;
  const side = listeners.filter(({ trafficDirection: way }) => way === wanted || way === TrafficDirection.UNSPECIFIED);
  const bound = side.filter(({ bindToPort }) => bindToPort !== false);
  const direct = atDestination(bound, destination);
  if (direct !== undefined) return { listener: direct, isRedirected: false };
  const through = bound.find(takesRedirected);
  if (through === undefined) return undefined;
  if (!through.useOriginalDst) return { listener: through, isRedirected: true };
  const own = atDestination(
    side.filter((listener) => listener !== through),
    destination,
  );
  return { listener: own ?? through, ...(own && { through }), isRedirected: true };
}

function takesRedirected({ useOriginalDst, listenerFilters }: Listener): boolean {
  return useOriginalDst === true || listenerFilters.some(({ name }) => name === 'envoy.filters.listener.original_dst');
}

/** The TCP listener at the address itself, else the one at all addresses. */
function atDestination(
  listeners: readonly Listener[],
  { address, port }: Question['destination'],
): Listener | undefined {
  const at = (holds: (place: Place) => boolean): Listener | undefined =>
    listeners.find(
      (listener) =>
        listener.udpListenerConfig === undefined &&
        placesOf(listener).some((place) => place.port === port && holds(place)),
    );
  return (
    at((place) => place.address === address) ??
    at((place) => isUnspecified(place.address)) ??
    // The question names no address: the proxy binds services at loopback.
    (address === undefined ? at((place) => isLoopback(place.address)) : undefined)
  );
}

function placesOf({ address, additionalAddresses }: Listener): readonly Place[] {
  return [address, ...additionalAddresses.map((one) => one.address)].flatMap(placeOf);
}

function placeOf(address: Address | undefined): readonly Place[] {
  if (address?.address.case !== 'socketAddress') return [];
  const { address: ip, portSpecifier } = address.address.value;
  return portSpecifier.case === 'portValue' ? [{ address: ip, port: portSpecifier.value }] : [];
}
