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
  /** Destination ranges that distinguish the service from others on the same address. */
  readonly subnets: readonly string[];
}

export interface Addressing {
  readonly shape: ProxyShape;
  readonly push: PushContext;
  readonly egress: Pick<EgressListenerScope, 'bind'>;
  /** If true, connections are not redirected, so the proxy must bind the addresses that applications connect to. */
  readonly isBound: boolean;
}

export function addressesOf(
  service: Service,
  protocol: ApplicationProtocol,
  { shape, push, egress, isBound }: Addressing,
): readonly ServiceAddress[] {
  const wildcard = serviceAddressAt(wildcardAddress(shape.ipFamily));
  if (egress.bind !== undefined) return [serviceAddressAt(egress.bind)];
  const serviceAddresses = virtualAddresses(service, shape, push.features);
  if (isBound) {
    // Virtual addresses belong to no interface, so only loopback addresses can be bound. IPv4-mapped IPv6 addresses cannot, because Envoy's sockets
    // have one family.
    const bindableAddresses = isHttp(protocol)
      ? []
      : serviceAddresses.filter((address) => isLoopback(address) && !isMapped(address));
    return bindableAddresses.length > 0
      ? bindableAddresses.map(serviceAddressAt)
      : [serviceAddressAt(loopbackAddress(shape.ipFamily))];
  }
  if (isHttp(protocol)) return [wildcard];
  if (serviceAddresses.length === 0)
    return isHeadless(service) ? podAddresses(service, shape, push).map(serviceAddressAt) : [wildcard];
  const subnets = serviceAddresses.filter(isCidr);
  const singleAddresses = serviceAddresses.filter((address) => !isCidr(address)).map(serviceAddressAt);
  return subnets.length === 0 ? singleAddresses : [...singleAddresses, { ...wildcard, subnets }];
}

function isMapped(address: string): boolean {
  return /^[0:]*:ffff:/i.test(address);
}

function serviceAddressAt(bind: string): ServiceAddress {
  return { bind, subnets: [] };
}

function podAddresses({ hostname, namespace }: Service, shape: ProxyShape, push: PushContext): readonly string[] {
  const { clusterId, network, ownAddresses } = shape;
  const pods = push.endpointsOf(hostname, namespace).filter((pod) => {
    if (pod.health !== 'healthy') return false;
    if (pod.clusterId !== clusterId && !push.features.multiclusterHeadless) return false;
    // An address is valid only in its network.
    return pod.network === '' || network === '' || pod.network === network;
  });
  return [...new Set(pods.map(({ address }) => address))].filter((address) => !ownAddresses.includes(address));
}
