import type { Config } from '../../config/config.ts';
import { protocolOf } from '../../fields/protocol.ts';
import type { KubernetesNode } from '../../kinds/kubernetes/node.ts';
import type { KubernetesService, KubernetesServicePort } from '../../kinds/kubernetes/service.ts';
import { matchesSelector } from '../label-match.ts';
import type { Port, Resolution, Service, ServiceAttributes } from '../service.ts';
import { type ExportRule, exportSet } from '../visibility.ts';
import type { KubernetesOptions } from './kubernetes-options.ts';

const nodeSelectorAnnotation = 'traffic.istio.io/nodeSelector';

/** @param nodes called only for a NodePort service with a node selector */
export function convertService(
  config: Config<KubernetesService>,
  options: ExportRule & Pick<KubernetesOptions, 'trustDomain' | 'domain' | 'clusterId' | 'defaultServiceExportTo'>,
  nodes: () => Iterable<Config<KubernetesNode>>,
): Service {
  const { spec } = config.spec;
  const addresses = virtualIps(config);
  return {
    hostname: hostnameOf(config, options.domain),
    namespace: config.namespace,
    defaultAddress: addresses[0] ?? '0.0.0.0',
    addresses,
    clusterVIPs: { [options.clusterId]: addresses.length === 0 ? ['0.0.0.0'] : addresses },
    ports: spec.ports.map(convertPort),
    resolution: resolutionOf(config),
    meshExternal: false,
    serviceAccounts: serviceAccountsOf(config, options.trustDomain),
    creationTime: config.creationTimestamp,
    exportTo: exportSet(config.namespace, exportAnnotation(config), options.defaultServiceExportTo, options),
    labels: config.labels,
    registry: 'Kubernetes',
    origin: { kind: 'Service', namespace: config.namespace, name: config.name },
    attributes: attributesOf(config, options.clusterId, nodes),
  };
}

function hostnameOf({ name, namespace }: Pick<Config, 'name' | 'namespace'>, domain: string): string {
  return `${name}.${namespace}.svc.${domain}`;
}

function resolutionOf({ spec: { spec } }: Config<KubernetesService>): Resolution {
  if (spec.type === 'ExternalName' && spec.externalName !== '') return 'Alias';
  return spec.clusterIP === 'None' ? 'Passthrough' : 'ClientSideLB';
}

function virtualIps({ spec: { spec } }: Config<KubernetesService>): readonly string[] {
  if (spec.type === 'ExternalName') return [];
  const clusterIps = spec.clusterIPs.length > 0 ? spec.clusterIPs : [spec.clusterIP];
  return clusterIps.filter((address) => address !== '' && address !== 'None');
}

function convertPort({ name, port, protocol, appProtocol }: KubernetesServicePort): Port {
  const declaredPort = { name, number: port, transport: protocol, ...(appProtocol !== undefined && { appProtocol }) };
  return { name, number: port, protocol: protocolOf(declaredPort) };
}

export const exportAnnotationName = 'networking.istio.io/exportTo';

export function exportAnnotation({ annotations }: Pick<Config, 'annotations'>): string[] {
  return commaList(annotations[exportAnnotationName]);
}

function serviceAccountsOf({ annotations, namespace }: Config, trustDomain: string): readonly string[] {
  const localAccounts = commaList(annotations['alpha.istio.io/kubernetes-serviceaccounts']);
  const canonicalAccounts = commaList(annotations['alpha.istio.io/canonical-serviceaccounts']);
  return [
    ...canonicalAccounts,
    ...localAccounts.map((account) => `spiffe://${trustDomain}/ns/${namespace}/sa/${account}`),
  ];
}

function commaList(text = ''): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function attributesOf(
  config: Config<KubernetesService>,
  clusterId: string,
  nodes: () => Iterable<Config<KubernetesNode>>,
): ServiceAttributes {
  const { spec } = config.spec;
  const distribution = trafficDistributions.get(spec.trafficDistribution ?? '');
  return {
    type: spec.type,
    ...(hasSelector(config) && { selector: spec.selector }),
    ...(spec.type === 'ExternalName' && { externalName: spec.externalName }),
    ...externalAddressFields(config, clusterId, nodes),
    ...(spec.internalTrafficPolicy === 'Local' && { nodeLocal: true }),
    ...(spec.publishNotReadyAddresses && { publishNotReadyAddresses: true }),
    ...(distribution && { trafficDistribution: distribution }),
  };
}

const trafficDistributions: ReadonlyMap<string, ServiceAttributes['trafficDistribution']> = new Map([
  ['PreferClose', 'PreferSameZone'],
  ['PreferSameZone', 'PreferSameZone'],
  ['PreferSameNode', 'PreferSameNode'],
]);

export function hasSelector({ spec: { spec } }: Config<KubernetesService>): boolean {
  return spec.type !== 'ExternalName' && Object.keys(spec.selector ?? {}).length > 0;
}

function externalAddressFields(
  config: Config<KubernetesService>,
  clusterId: string,
  nodes: () => Iterable<Config<KubernetesNode>>,
): Pick<ServiceAttributes, 'externalAddresses' | 'externalPorts'> {
  const { spec, status } = config.spec;
  const selector = spec.type === 'NodePort' ? nodeSelectorOf(config) : undefined;
  if (selector !== undefined) {
    const addresses = [...nodes()].filter(({ labels }) => matchesSelector(selector, labels)).flatMap(externalIps);
    const ports = spec.ports.flatMap(({ port, nodePort }) => (nodePort ? [[port, nodePort]] : []));
    return { externalAddresses: { [clusterId]: addresses }, externalPorts: { [clusterId]: Object.fromEntries(ports) } };
  }
  const ingress = spec.type === 'LoadBalancer' ? status.loadBalancer.ingress : [];
  const balancerAddresses = ingress.flatMap(({ ip, hostname }) => (ip || hostname ? [(ip || hostname)!] : []));
  const addresses = [...balancerAddresses, ...spec.externalIPs];
  return addresses.length === 0 ? {} : { externalAddresses: { [clusterId]: addresses } };
}

/** The annotation is a JSON object of labels; `{}` selects every node. */
export function nodeSelectorOf({ annotations }: Config): Readonly<Record<string, string>> | undefined {
  const text = annotations[nodeSelectorAnnotation];
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, string>)
      : undefined;
  } catch {
    return undefined;
  }
}

function externalIps({ spec }: Config<KubernetesNode>): string[] {
  return spec.status.addresses.filter(({ type }) => type === 'ExternalIP').map(({ address }) => address);
}
