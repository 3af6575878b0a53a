/** Where the connections of a sidecar's applications to a service arrive (spec/discovery.md §8.4). */

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
  /** Destinations by which the service is told apart from others on the address. */
  readonly subnets: readonly string[];
}

export interface Addressing {
  readonly shape: ProxyShape;
  readonly push: PushContext;
  readonly egress: Pick<EgressListenerScope, 'bind'>;
  /** Nothing redirects traffic to the proxy: it must listen where the application connects to. */
  readonly bound: boolean;
}

/** All of them: each is a listener of its own, or a part of one that services share. */
export function addressesOf(
  service: Service,
  protocol: ApplicationProtocol,
  { shape, push, egress, bound }: Addressing,
): readonly ServiceAddress[] {
  const wildcard = at(wildcardAddress(shape.ipFamily));
  if (egress.bind !== undefined) return [at(egress.bind)];
  const own = virtualAddresses(service, shape, push.features);
  if (bound) {
    // Virtual addresses belong to no interface; those of the loopback network can be bound all the same, but not as IPv6
    // writes them: Envoy's sockets are of one family.
    const bindable = isHttp(protocol) ? [] : own.filter((address) => isLoopback(address) && !isMapped(address));
    return bindable.length > 0 ? bindable.map(at) : [at(loopbackAddress(shape.ipFamily))];
  }
  if (isHttp(protocol)) return [wildcard];
  if (own.length === 0) return isHeadless(service) ? podAddresses(service, shape, push).map(at) : [wildcard];
  const subnets = own.filter(isCidr);
  const single = own.filter((address) => !isCidr(address)).map(at);
  return subnets.length === 0 ? single : [...single, { ...wildcard, subnets }];
}

function isMapped(address: string): boolean {
  return /^[0:]*:ffff:/i.test(address);
}

function at(bind: string): ServiceAddress {
  return { bind, subnets: [] };
}

/** Pods of a headless service that can be reached, each by its own address; the proxy's own workload is not among them. */
function podAddresses({ hostname, namespace }: Service, shape: ProxyShape, push: PushContext): readonly string[] {
  const { clusterId, network, ownAddresses } = shape;
  const pods = push.endpointsOf(hostname, namespace).filter((pod) => {
    if (pod.health !== 'healthy') return false;
    if (pod.clusterId !== clusterId && !push.features.multiclusterHeadless) return false;
    // Addresses mean something in their own network only.
    return pod.network === '' || network === '' || pod.network === network;
  });
  return [...new Set(pods.map(({ address }) => address))].filter((address) => !ownAddresses.includes(address));
}
