import { isIPv6 } from 'node:net';
import { isUnspecified } from '../../runtime/addresses/unspecified-address.ts';
import { ownValue } from '../../runtime/json-object.ts';
import type { Features } from '../mesh/features.ts';
import type { Service } from '../services/service.ts';
import type { ProxyShape } from './proxy-shape.ts';

export type AddressingShape = Pick<ProxyShape, 'clusterId' | 'ipFamily' | 'metadata'>;

/** Allocated addresses are included only if the proxy's DNS returns them. May contain CIDR ranges, or be empty. */
export function virtualAddresses(
  service: Service,
  shape: AddressingShape,
  { autoAllocate }: Pick<Features, 'autoAllocate'>,
): readonly string[] {
  const clusterAddresses = (ownValue(service.clusterVIPs, shape.clusterId) ?? namedAddresses(service)).filter(
    (address) => !isUnspecified(address),
  );
  if (clusterAddresses.length > 0) return addressesOfFamily(clusterAddresses, shape);
  const { autoAllocated } = service;
  if (autoAllocated === undefined || !returnsAllocated(shape, autoAllocate)) return [];
  return addressesOfFamily([autoAllocated.ipv4, autoAllocated.ipv6], shape);
}

/** Returns equal keys for proxies with equal addresses of all services. */
export function addressingKey({ clusterId, ipFamily, metadata }: AddressingShape): string {
  const { DNS_CAPTURE = '', DNS_AUTO_ALLOCATE = '' } = metadata;
  return `${clusterId}~${ipFamily}~${DNS_CAPTURE}~${DNS_AUTO_ALLOCATE}`;
}

function namedAddresses({ addresses, defaultAddress }: Service): readonly string[] {
  return addresses.includes(defaultAddress) ? addresses : [defaultAddress, ...addresses];
}

function returnsAllocated({ metadata }: AddressingShape, isAllocatedForAll: boolean): boolean {
  return metadata.DNS_CAPTURE === 'true' && (isAllocatedForAll || metadata.DNS_AUTO_ALLOCATE === 'true');
}

/** Removes addresses of families that the proxy lacks, unless none would remain. */
function addressesOfFamily(addresses: readonly string[], { ipFamily }: AddressingShape): readonly string[] {
  if (ipFamily === 'dual') return addresses;
  const reachable = addresses.filter((address) => isIPv6(address.split('/', 1)[0]!) === (ipFamily === 'v6'));
  return reachable.length > 0 ? reachable : addresses;
}
