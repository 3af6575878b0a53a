/** Addresses at which a sidecar receives its applications' connections to a service (spec/discovery.md §8.4). */

import { type ApplicationProtocol, isHttp } from '../../../model/fields/protocol.ts';
import { isHeadless, type ProxyShape } from '../../../model/proxy/proxy-shape.ts';
import { virtualAddresses } from '../../../model/proxy/service-addresses.ts';
import type { PushContext } from '../../../model/push-context/push-context.ts';
import type { EgressListenerScope } from '../../../model/push-context/sidecar-scope.ts';
import type { Service } from '../../../model/services/service.ts';
import { isLoopback } from '../../../runtime/addresses/loopback.ts';
import { isCidr, loopbackAddress, wildcardAddress } from '../../messages/address.ts';

export interface ServiceAddress {
  readonly bind: string;
  /** Destinations that distinguish the service from others on the address. */
  readonly subnets: readonly string[];
}

export interface Addressing {
  readonly shape: ProxyShape;
  readonly push: PushContext;
  readonly egress: Pick<EgressListenerScope, 'bind'>;
  /** Without redirection, the proxy must bind the addresses that applications connect to. */
  readonly bound: boolean;
}

/** Each address is a separate listener, or part of a listener that services share. */
export function addressesOf(
  service: Service,
  protocol: ApplicationProtocol,
  { shape, push, egress, bound }: Addressing,
): readonly ServiceAddress[] {
  const wildcard = at(wildcardAddress(shape.ipFamily));
  if (egress.bind !== undefined) return [at(egress.bind)];
  const serviceAddresses = virtualAddresses(service, shape, push.features);
  if (bound) {
    // Virtual addresses belong to no interface. Those of the loopback network can still be bound, except in the
    // IPv4-mapped form, because Envoy's sockets have one family.
    const bindable = isHttp(protocol)
      ? []
      : serviceAddresses.filter((address) => isLoopback(address) && !isMapped(address));
    return bindable.length > 0 ? bindable.map(at) : [at(loopbackAddress(shape.ipFamily))];
  }
  if (isHttp(protocol)) return [wildcard];
  if (serviceAddresses.length === 0)
    return isHeadless(service) ? podAddresses(service, shape, push).map(at) : [wildcard];
  const subnets = serviceAddresses.filter(isCidr);
  const single = serviceAddresses.filter((address) => !isCidr(address)).map(at);
  return subnets.length === 0 ? single : [...single, { ...wildcard, subnets }];
}

function isMapped(address: string): boolean {
  return /^[0:]*:ffff:/i.test(address);
}

function at(bind: string): ServiceAddress {
  return { bind, subnets: [] };
}

/** Reachable pods of a headless service by their addresses, without the proxy's own workload. */
function podAddresses({ hostname, namespace }: Service, shape: ProxyShape, push: PushContext): readonly string[] {
  const { clusterId, network, ownAddresses } = shape;
  const pods = push.endpointsOf(hostname, namespace).filter((pod) => {
    if (pod.health !== 'healthy') return false;
    if (pod.clusterId !== clusterId && !push.features.multiclusterHeadless) return false;
    // Addresses are only valid within their network.
    return pod.network === '' || network === '' || pod.network === network;
  });
  return [...new Set(pods.map(({ address }) => address))].filter((address) => !ownAddresses.includes(address));
}
