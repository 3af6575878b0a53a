import type { Config } from '../../config/config.ts';
import { joinLocality } from '../../fields/locality.ts';
import type { KubernetesNode } from '../../kinds/kubernetes/node.ts';
import type { KubernetesContainerPort, KubernetesPod } from '../../kinds/kubernetes/pod.ts';
import type { Workload } from '../workload.ts';
import type { ClusterNetworks } from './networks.ts';

export interface PodContext {
  readonly trustDomain: string;
  readonly clusterId: string;
  readonly networks: ClusterNetworks;
  readonly node: Config<KubernetesNode> | undefined;
}

/** Returns `undefined` for a pod without an address, not yet running, or terminated. */
export function podWorkload(config: Config<KubernetesPod>, context: PodContext): Workload | undefined {
  const { spec, status } = config.spec;
  const addresses = status.podIPs.length > 0 ? status.podIPs.map(({ ip }) => ip) : [status.podIP];
  const [address = ''] = addresses;
  if (address === '' || (status.phase !== 'Running' && status.phase !== 'Pending')) return undefined;
  const { namespace, name, labels: podLabels, creationTimestamp } = config;
  const locality = podLocality(podLabels, context.node);
  const network = context.networks.networkOf(address, podLabels);
  const { clusterId } = context;
  const readyStatus = status.conditions.find(({ type }) => type === 'Ready')?.status ?? 'True';
  return {
    ...{ kind: 'Pod', namespace, name, labels: podLabels, addresses, creationTime: creationTimestamp },
    ports: portsByName(portsOf(spec)),
    template: {
      address,
      labels: withTopology(podLabels, { locality, clusterId, network, nodeName: spec.nodeName }),
      serviceAccount: `spiffe://${context.trustDomain}/ns/${namespace}/sa/${spec.serviceAccountName || 'default'}`,
      ...{ network, locality, clusterId, namespace },
      weight: 0,
      tlsMode: podLabels['security.istio.io/tlsMode'] === 'istio' ? 'istio' : 'disabled',
      workloadName: workloadName(name, podLabels),
      ...(spec.nodeName !== '' && { nodeName: spec.nodeName }),
      ...(spec.hostname !== '' && { hostname: spec.hostname }),
      ...(spec.subdomain !== '' && { subdomain: spec.subdomain }),
      // A terminating pod is unhealthy, although it stays ready for a while. For pods in EndpointSlices, the slice's conditions apply.
      health: readyStatus === 'True' && config.isEnding !== true ? 'healthy' : 'unhealthy',
    },
  };
}

function portsOf({ containers, initContainers }: KubernetesPod['spec']): KubernetesContainerPort[] {
  const sidecars = initContainers.filter(({ restartPolicy }) => restartPolicy === 'Always');
  return [...containers, ...sidecars].flatMap(({ ports }) => ports);
}

/** Prefers the first TCP port of a name, as Kubernetes does (kubernetes#54213). */
export function portsByName(ports: readonly KubernetesContainerPort[]): Readonly<Record<string, number>> {
  const namedPorts = ports.filter(({ name }) => name !== '');
  const { tcp = [], others = [] } = Object.groupBy(namedPorts, ({ protocol }) =>
    protocol === 'TCP' ? 'tcp' : 'others',
  );
  // Reversed, because fromEntries keeps the last entry of a name.
  return Object.fromEntries([...tcp, ...others].reverse().map(({ name, containerPort }) => [name, containerPort]));
}

/** Reads the pod's `istio-locality` label (dots for slashes), else the locality of its node. */
function podLocality(labels: Readonly<Record<string, string>>, node: Config<KubernetesNode> | undefined): string {
  const label = labels['istio-locality'];
  if (label) return label.includes('/') ? label : label.replaceAll('.', '/');
  return nodeLocality(node);
}

export function nodeLocality(node: Config<KubernetesNode> | undefined): string {
  const labels = node?.labels ?? {};
  return joinLocality(
    labels['topology.kubernetes.io/region'] ?? labels['failure-domain.beta.kubernetes.io/region'],
    labels['topology.kubernetes.io/zone'] ?? labels['failure-domain.beta.kubernetes.io/zone'],
    labels['topology.istio.io/subzone'],
  );
}

interface Topology {
  readonly locality: string;
  readonly clusterId: string;
  readonly network: string;
  readonly nodeName: string;
}

function withTopology(
  labels: Readonly<Record<string, string>>,
  { locality, clusterId, network, nodeName }: Topology,
): Readonly<Record<string, string>> {
  const [region = '', zone = '', subzone = ''] = locality.split('/');
  const localityLabels = {
    'topology.kubernetes.io/region': region,
    'topology.kubernetes.io/zone': zone,
    'topology.istio.io/subzone': subzone,
    'topology.istio.io/cluster': clusterId,
    'topology.istio.io/network': network,
    'kubernetes.io/hostname': nodeName,
  };
  return { ...labels, ...Object.fromEntries(Object.entries(localityLabels).filter(([, value]) => value !== '')) };
}

/** Derives `web` from the pod names `web-5d9c7b-x2x4q` and `web-0`, and from labels. */
function workloadName(name: string, labels: Readonly<Record<string, string>>): string {
  const hash = labels['pod-template-hash'];
  const hashIndex = hash ? name.lastIndexOf(`-${hash}-`) : -1;
  if (hashIndex > 0) return name.slice(0, hashIndex);
  return labels['statefulset.kubernetes.io/pod-name'] === name ? name.replace(/-\d+$/, '') : name;
}
