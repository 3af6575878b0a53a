import type { Endpoint } from '../../model/services/service.ts';

export type OmissionReason =
  | 'different port'
  | 'different node'
  | 'plaintext behind SNI'
  | 'host name'
  | 'no address'
  | 'subset labels'
  | 'unhealthy'
  | 'draining'
  | 'terminating'
  | 'different cluster'
  | 'client without mutual TLS'
  | 'remote workload without mutual TLS'
  | 'remote workload not healthy';

/** Completes a sentence that begins with the number of endpoints. */
export const omissionText: Readonly<Record<OmissionReason, string>> = {
  'different port': 'do not serve this port',
  'different node': 'run on a different node (internalTrafficPolicy is Local)',
  'plaintext behind SNI': 'do not accept mutual TLS, which this cluster passes through',
  'host name': 'are host names, which only resolution DNS resolves',
  'no address': 'have no address, and no gateway of their network is known',
  'subset labels': 'do not have the labels of the subset',
  unhealthy: 'are not ready',
  draining: 'are draining',
  terminating: 'are terminating',
  'different cluster': 'run in a different Kubernetes cluster (the service is cluster-local)',
  'client without mutual TLS':
    'are behind gateways of a different network, which accept only mutual TLS; clients of this service do not use it (trafficPolicy.tls, enableAutoMtls or meshExternal)',
  'remote workload without mutual TLS':
    'are behind gateways of a different network, which accept only mutual TLS; these workloads do not accept it',
  'remote workload not healthy': 'are behind gateways of a different network, and are not healthy',
};

const maxAddresses = 3;

export function addressList(endpoints: readonly Endpoint[]): string {
  const addressTexts = endpoints.slice(0, maxAddresses).map(({ address, port, network, workloadName }) => {
    const endpointAddress =
      port === 0 ? address : address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
    if (address === '') return `${workloadName || 'an endpoint'} of network ${network}`;
    return network === '' ? endpointAddress : `${endpointAddress} of network ${network}`;
  });
  const omittedCount = endpoints.length - addressTexts.length;
  return `${addressTexts.join(', ')}${omittedCount === 0 ? '' : ` and ${omittedCount} more`}`;
}
