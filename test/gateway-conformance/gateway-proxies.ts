/**
 * Creates a Deployment of a proxy and a Service with an address for each Gateway of class `istio`, as a gateway
 * installer would.
 */
import type { ClusterApi, KubeObject } from './cluster-api.ts';

/** Image name that the kubelet of this folder runs as `pilot-agent proxy router`. */
export const proxyImage = 'pilot-agent';

const nameLabel = 'gateway.networking.k8s.io/gateway-name';

export async function runGateways(api: ClusterApi, objects: ReadonlyMap<string, readonly KubeObject[]>): Promise<void> {
  const [gateways, deployments, services, pods] = ['gateways', 'deployments', 'services', 'pods'].map(
    (plural) => objects.get(plural)!,
  ) as [KubeObject[], KubeObject[], KubeObject[], KubeObject[]];
  const istioGateways = gateways.filter(
    ({ spec, metadata }) => spec.gatewayClassName === 'istio' && !metadata.deletionTimestamp,
  );
  for (const gateway of istioGateways) {
    const { namespace, name } = gateway.metadata;
    const isOurs = ({ metadata }: KubeObject): boolean =>
      metadata.namespace === namespace && metadata.name === `${name}-istio`;
    if (!deployments.some(isOurs)) await createProxy(api, gateway);
    const service = services.find(isOurs);
    const ports = portsOf(gateway);
    const path = `/api/v1/namespaces/${namespace}/services`;
    if (service === undefined) await createService(api, gateway, ports);
    else if (portNumbers(service.spec.ports) !== portNumbers(ports)) {
      await api.patch(`${path}/${name}-istio`, { spec: { ports } });
    }
    const pod = pods.find(
      ({ metadata, status }) =>
        metadata.namespace === namespace && metadata.labels?.[nameLabel] === name && status?.podIP !== undefined,
    );
    if (service === undefined || pod === undefined) continue;
    if (service.status?.loadBalancer?.ingress?.[0]?.ip === pod.status.podIP) continue;
    const status = { loadBalancer: { ingress: [{ ip: pod.status.podIP }] } };
    await api.patch(`${path}/${name}-istio/status`, { status });
  }
  // No controller garbage-collects objects by owner here.
  const owners = new Set(istioGateways.map(({ metadata }) => metadata.uid));
  for (const [plural, listedObjects] of [
    ['deployments', deployments],
    ['services', services],
  ] as const) {
    for (const { metadata } of listedObjects) {
      const [owner] = metadata.ownerReferences ?? [];
      if (owner?.kind !== 'Gateway' || owners.has(owner.uid)) continue;
      const group = plural === 'deployments' ? '/apis/apps/v1' : '/api/v1';
      await api.delete(`${group}/namespaces/${metadata.namespace}/${plural}/${metadata.name}`);
    }
  }
}

function metadataOf({ apiVersion, metadata, spec }: KubeObject, labels: KubeObject = {}): KubeObject {
  const infrastructure = spec.infrastructure ?? {};
  return {
    name: `${metadata.name}-istio`,
    labels: { [nameLabel]: metadata.name, ...labels, ...infrastructure.labels },
    annotations: { ...infrastructure.annotations },
    ownerReferences: [
      {
        apiVersion: apiVersion ?? 'gateway.networking.k8s.io/v1',
        ...{ kind: 'Gateway', name: metadata.name, uid: metadata.uid },
      },
    ],
  };
}

/**
 * The service account of the proxy may read the Secrets of its namespace, which the control plane checks before it
 * sends them.
 */
async function createProxy(api: ClusterApi, gateway: KubeObject): Promise<void> {
  const { namespace, name: gatewayName } = gateway.metadata;
  const metadata = metadataOf(gateway);
  const { name } = metadata;
  await api.create(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata });
  const rights = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  const rules = [{ apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list', 'watch'] }];
  await api.create(`${rights}/roles`, { metadata: { name }, rules });
  await api.create(`${rights}/rolebindings`, {
    metadata: { name },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
    subjects: [{ kind: 'ServiceAccount', name, namespace }],
  });
  const selector = { [nameLabel]: gatewayName };
  await api.create(`/apis/apps/v1/namespaces/${namespace}/deployments`, {
    metadata,
    spec: {
      selector: { matchLabels: selector },
      template: {
        metadata: { labels: { ...metadata.labels, 'service.istio.io/canonical-name': name } },
        spec: { serviceAccountName: name, containers: [{ name: 'istio-proxy', image: proxyImage }] },
      },
    },
  });
}

async function createService(api: ClusterApi, gateway: KubeObject, ports: readonly KubeObject[]): Promise<void> {
  const { namespace, name } = gateway.metadata;
  await api.create(`/api/v1/namespaces/${namespace}/services`, {
    metadata: metadataOf(gateway),
    spec: {
      ...{ type: 'LoadBalancer', allocateLoadBalancerNodePorts: false, ports },
      selector: { [nameLabel]: name },
    },
  });
}

function portsOf({ spec }: KubeObject): KubeObject[] {
  const numbers = new Set<number>(
    spec.listeners.filter(({ protocol }: KubeObject) => protocol !== 'UDP').map(({ port }: KubeObject) => port),
  );
  return [
    { name: 'status-port', port: 15021, protocol: 'TCP' },
    ...[...numbers].map((port) => ({ name: `port-${port}`, port, protocol: 'TCP' })),
  ];
}

function portNumbers(ports: readonly KubeObject[]): string {
  return ports.map(({ port }) => port).join();
}
