/** Kinds of Kubernetes objects that node tests write, and how to read their status. */
import type { ApiResource } from '../../src/discovery/kubernetes/api-resource.ts';
import type { KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';

const core = { group: '', version: 'v1', namespaced: true } as const;

export const resources = {
  Node: { ...core, kind: 'Node', plural: 'nodes', namespaced: false },
  Deployment: { ...core, group: 'apps', kind: 'Deployment', plural: 'deployments' },
  Pod: { ...core, kind: 'Pod', plural: 'pods' },
} as const satisfies Record<string, ApiResource>;

function pluralOf(kind: string): string {
  const name = kind.toLowerCase();
  if (/[^aeiou]y$/.test(name)) return `${name.slice(0, -1)}ies`;
  return /(s|x|ch)$/.test(name) ? `${name}es` : `${name}s`;
}

/** Kinds without a namespace, except those whose name begins with `Cluster`. */
const clusterKinds = [
  ...['Namespace', 'Node', 'CustomResourceDefinition'],
  ...['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'],
];

export function resourceOfObject({ apiVersion = '', kind = '' }: KubernetesObject): ApiResource {
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  const namespaced = !kind.startsWith('Cluster') && !clusterKinds.includes(kind);
  return { group, version, kind, plural: pluralOf(kind), namespaced };
}

/** Whether a condition of the status is `True`. */
export function hasCondition({ status }: KubernetesObject, type: string): boolean {
  const { conditions = [] } = (status ?? {}) as { conditions?: readonly { type: string; status: string }[] };
  return conditions.some((condition) => condition.type === type && condition.status === 'True');
}
