/** Fake Kubernetes controllers: default service accounts, Pods of Deployments, EndpointSlices, and deletion of namespaces. */
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { ClusterApi, KubeObject } from './cluster-api.ts';

export type Objects = ReadonlyMap<string, readonly KubeObject[]>;

export const nodeName = 'node1';
const sliceLabel = { name: 'endpointslice.kubernetes.io/managed-by', value: 'conformance' };
/** API paths of the objects that each round reads, by plural. */
const paths = {
  namespaces: '/api/v1/namespaces',
  deployments: '/apis/apps/v1/deployments',
  pods: '/api/v1/pods',
  services: '/api/v1/services',
  slices: `/apis/discovery.k8s.io/v1/endpointslices?labelSelector=${encodeURIComponent(`${sliceLabel.name}=${sliceLabel.value}`)}`,
  gateways: '/apis/gateway.networking.k8s.io/v1/gateways',
};

export async function readObjects(api: ClusterApi): Promise<Objects> {
  const read = Object.entries(paths).map(async ([plural, path]) => [plural, await api.list(path)] as const);
  return new Map(await Promise.all(read));
}

const isEnding = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined;

/** Kinds that the suite leaves in a deleted namespace. */
const leftovers = [
  ...['/apis/apps/v1/deployments', '/api/v1/pods', '/api/v1/services', '/api/v1/secrets', '/api/v1/configmaps'],
  ...['/api/v1/serviceaccounts', '/apis/discovery.k8s.io/v1/endpointslices'],
  ...['gateways', 'httproutes', 'grpcroutes', 'tlsroutes'].map(
    (plural) => `/apis/gateway.networking.k8s.io/v1/${plural}`,
  ),
];

export class NamespaceController {
  readonly #knownObjects = new Set<string>();

  async run(api: ClusterApi, objects: Objects): Promise<void> {
    for (const namespace of objects.get('namespaces')!) {
      const { name, uid } = namespace.metadata;
      if (isEnding(namespace)) {
        for (const path of leftovers) {
          const [, group, plural] = /^(.*)\/(\w+)$/.exec(path)!;
          await api.delete(`${group}/namespaces/${name}/${plural}`);
        }
        await api.put(`/api/v1/namespaces/${name}/finalize`, { ...namespace, spec: { finalizers: [] } });
      } else if (!this.#knownObjects.has(uid)) {
        this.#knownObjects.add(uid);
        await api.create(`/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: 'default' } });
      }
    }
  }
}

/** Name suffixes have the form of real Deployments, because the suite parses them. */
function podName(deployment: string, template: string): string {
  const digest = createHash('sha256').update(template).digest('hex').slice(0, 9);
  return `${deployment.slice(0, 40)}-${digest}-${crypto.randomUUID().slice(0, 5)}`;
}

export async function runDeployments(api: ClusterApi, objects: Objects): Promise<void> {
  const deployments = objects.get('deployments')!;
  const pods = objects.get('pods')!;
  for (const deployment of deployments) {
    const { namespace, name, uid, generation } = deployment.metadata;
    const { template, replicas = 1 } = deployment.spec;
    const text = JSON.stringify(template);
    const owned = pods.filter((pod) => pod.metadata.ownerReferences?.[0]?.uid === uid && !isEnding(pod));
    const current = owned.filter((pod) => pod.metadata.annotations?.template === digestOf(text));
    const path = `/api/v1/namespaces/${namespace}/pods`;
    for (const pod of [...owned.filter((pod) => !current.includes(pod)), ...current.slice(replicas)]) {
      await api.delete(`${path}/${pod.metadata.name}`);
    }
    for (let count = current.length; count < replicas; count++) {
      await api.create(path, {
        metadata: {
          ...{ name: podName(name, text), labels: template.metadata.labels },
          annotations: { ...template.metadata.annotations, template: digestOf(text) },
          ownerReferences: [{ apiVersion: 'apps/v1', kind: 'Deployment', name, uid }],
        },
        spec: { ...template.spec, nodeName },
      });
    }
    const ready = current.filter(isReady).length;
    const { status = {} } = deployment;
    if (status.availableReplicas === ready && status.observedGeneration === generation) continue;
    const condition = { type: 'Available', status: ready > 0 ? 'True' : 'False', reason: 'Pods', message: '' };
    await api.patch(`/apis/apps/v1/namespaces/${namespace}/deployments/${name}/status`, {
      status: {
        ...{ observedGeneration: generation, replicas: current.length, updatedReplicas: current.length },
        ...{ readyReplicas: ready, availableReplicas: ready, conditions: [condition] },
      },
    });
  }
  const uids = new Set(deployments.map(({ metadata }) => metadata.uid));
  for (const { metadata } of pods) {
    const [owner] = metadata.ownerReferences ?? [];
    const isOrphan = owner?.kind === 'Deployment' && !uids.has(owner.uid);
    if (isOrphan || metadata.deletionTimestamp)
      await api.delete(`/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`);
  }
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

function isReady({ status }: KubeObject): boolean {
  return status?.conditions?.some((one: KubeObject) => one.type === 'Ready' && one.status === 'True') === true;
}

export async function runEndpointSlices(api: ClusterApi, objects: Objects): Promise<void> {
  const slices = objects.get('slices')!;
  const selectingServices = objects
    .get('services')!
    .filter(({ spec }) => spec.selector !== undefined && spec.type !== 'ExternalName');
  for (const service of selectingServices) {
    const { namespace, name } = service.metadata;
    const pods = objects.get('pods')!.filter((pod) => isSelected(pod, service));
    const content = { addressType: 'IPv4', endpoints: pods.map(endpointOf), ports: portsOf(service, pods) };
    const present = slices.find(({ metadata }) => metadata.namespace === namespace && metadata.name === `${name}-pods`);
    const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
    const labels = { 'kubernetes.io/service-name': name, [sliceLabel.name]: sliceLabel.value };
    if (present === undefined) await api.create(path, { ...content, metadata: { name: `${name}-pods`, labels } });
    else if (!isDeepStrictEqual(contentOf(present), contentOf(content)))
      await api.patch(`${path}/${name}-pods`, content);
  }
  const names = new Set(selectingServices.map(({ metadata }) => `${metadata.namespace}/${metadata.name}-pods`));
  for (const { metadata } of slices) {
    const { namespace, name } = metadata;
    if (!names.has(`${namespace}/${name}`))
      await api.delete(`/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices/${name}`);
  }
}

function contentOf({ endpoints, ports }: KubeObject): unknown {
  const sortedEntries = (items: readonly KubeObject[]) => items.map((item) => Object.entries(item).sort());
  return [sortedEntries(endpoints ?? []), sortedEntries(ports ?? [])];
}

function isSelected(pod: KubeObject, { metadata, spec }: KubeObject): boolean {
  if (pod.metadata.namespace !== metadata.namespace || pod.status?.podIP === undefined || isEnding(pod)) return false;
  const selector = Object.entries(spec.selector);
  return selector.length > 0 && selector.every(([key, value]) => pod.metadata.labels?.[key] === value);
}

function endpointOf(pod: KubeObject): KubeObject {
  const { namespace, name, uid } = pod.metadata;
  const ready = isReady(pod);
  return {
    ...{ addresses: [pod.status.podIP], conditions: { ready, serving: ready, terminating: false }, nodeName },
    targetRef: { kind: 'Pod', namespace, name, uid },
  };
}

function portsOf({ spec }: KubeObject, pods: readonly KubeObject[]): KubeObject[] {
  return spec.ports.flatMap(({ name = '', port, targetPort = port, protocol, appProtocol }: KubeObject) => {
    const number = typeof targetPort === 'number' ? targetPort : namedPort(targetPort, pods);
    return number === undefined ? [] : [{ name, port: number, protocol, ...(appProtocol && { appProtocol }) }];
  });
}

function namedPort(name: string, pods: readonly KubeObject[]): number | undefined {
  const ports = pods.flatMap(({ spec }) => spec.containers.flatMap(({ ports = [] }: KubeObject) => ports));
  return ports.find((port) => port.name === name)?.containerPort;
}
