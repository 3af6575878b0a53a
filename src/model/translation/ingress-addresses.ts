import { compareText } from '../config/config.ts';
import type { ConfigSet } from '../config/config-set.ts';
import { isIpAddress } from '../fields/names.ts';
import type { LoadBalancerIngress } from '../kinds/kubernetes/service.ts';
import type { MeshConfig } from '../mesh/mesh-config.ts';
import { ingressWorkloads } from './ingress.ts';

export type AddressSources = Pick<ConfigSet, 'Service' | 'Pod' | 'Node'>;
export type AddressSettings = Pick<MeshConfig, 'ingressService' | 'ingressSelector'>;

/**
 * Uses the Service in the mesh's settings, else the nodes that run the gateway's workloads.
 * @param namespace of the control plane, the Service and the workloads
 * @returns IP addresses, then host names, as in Istio
 */
export function ingressAddresses(
  sources: AddressSources,
  settings: AddressSettings,
  namespace: string,
): readonly LoadBalancerIngress[] {
  const values =
    settings.ingressService === ''
      ? addressesOfNodes(sources, settings, namespace)
      : addressesOfService(sources, settings, namespace);
  return [...new Set(values)]
    .map((value): LoadBalancerIngress => (isIpAddress(value) ? { ip: value } : { hostname: value }))
    .sort((a, b) => compareText(a.hostname ?? '', b.hostname ?? '') || compareText(a.ip ?? '', b.ip ?? ''));
}

function addressesOfService(
  { Service: services }: AddressSources,
  { ingressService }: AddressSettings,
  namespace: string,
): string[] {
  const service = services.find((candidate) => candidate.namespace === namespace && candidate.name === ingressService);
  if (service === undefined) return [];
  const { spec, status } = service.spec;
  if (spec.type === 'ExternalName') return spec.externalName === '' ? [] : [spec.externalName];
  const balancerAddresses = status.loadBalancer.ingress.flatMap(({ ip, hostname }) => ip ?? hostname ?? []);
  return [...balancerAddresses, ...spec.externalIPs];
}

function addressesOfNodes(
  { Pod: pods, Node: nodes }: AddressSources,
  { ingressSelector }: AddressSettings,
  namespace: string,
): string[] {
  const requiredLabels = Object.entries(ingressWorkloads(ingressSelector));
  const names = new Set(
    pods
      .filter((pod) => pod.namespace === namespace && pod.spec.status.phase === 'Running')
      .filter(({ labels }) => requiredLabels.every(([key, value]) => labels[key] === value))
      .map(({ spec }) => spec.spec.nodeName),
  );
  return nodes
    .filter(({ name }) => names.has(name))
    .flatMap(({ spec }) => spec.status.addresses)
    .filter(({ type, address }) => type === 'ExternalIP' && address !== '')
    .map(({ address }) => address);
}
