/** Changes Deployments like `kubectl rollout restart` and `kubectl scale`. */
import type { KubernetesObject } from '../../../src/discovery/kubernetes/api-server.ts';
import { eventually } from '../../harness/eventually.ts';
import { resources } from '../resources.ts';
import type { RunningNode } from '../start-node.ts';
import { podsOf } from '../workloads.ts';

const neverAborted = new AbortController().signal;
/** Maximum duration in milliseconds on two processors that run ten other programs. */
const rolloutLimitMs = 300_000;

interface DeploymentStatus {
  readonly observedGeneration?: number;
  readonly replicas?: number;
  readonly updatedReplicas?: number;
  readonly availableReplicas?: number;
}

export interface DeploymentName {
  readonly name: string;
  readonly namespace?: string;
}

export function patchDeployment(
  { cluster }: RunningNode,
  { name, namespace = cluster.namespace }: DeploymentName,
  body: unknown,
  patch: 'merge' | 'json' = 'merge',
): Promise<KubernetesObject> {
  return cluster.admin.request(
    { method: 'PATCH', patch, resource: resources.Deployment, namespace, name, body },
    neverAborted,
  );
}

let restarts = 0;

/** Replaces all pods of a Deployment. Resolves when new ones are available; old ones may still drain. */
export async function rollOut(node: RunningNode, deployment: DeploymentName): Promise<void> {
  const annotations = { 'kubectl.kubernetes.io/restartedAt': `${++restarts}` };
  await patchDeployment(node, deployment, { spec: { template: { metadata: { annotations } } } });
  await isRolledOut(node, deployment);
}

/** Resolves when the last change of a Deployment has taken effect. */
export async function isRolledOut(node: RunningNode, { name, namespace }: DeploymentName): Promise<void> {
  const { admin, namespace: ownNamespace } = node.cluster;
  const getRequest = {
    method: 'GET',
    resource: resources.Deployment,
    namespace: namespace ?? ownNamespace,
    name,
  } as const;
  let last: KubernetesObject | undefined;
  await eventually(
    `${name} is rolled out`,
    async () => {
      last = await admin.request(getRequest, neverAborted);
      const expected = (last.spec as { replicas: number }).replicas;
      const status = (last.status ?? {}) as DeploymentStatus;
      if (status.observedGeneration !== last.metadata.generation) return false;
      const counts = [status.replicas, status.updatedReplicas, status.availableReplicas];
      return counts.every((count = 0) => count === expected);
    },
    { deadlineMs: rolloutLimitMs },
  ).catch((error: unknown) => {
    throw new Error(`${name}: ${JSON.stringify(last?.status)}\n${node.lastLines()}`, { cause: error });
  });
}

/** Resolves when this number of pods is ready; with 0, when the last pod is removed. */
export async function scale(node: RunningNode, deployment: DeploymentName, replicas: number): Promise<void> {
  await patchDeployment(node, deployment, { spec: { replicas } });
  await isRolledOut(node, deployment);
  if (replicas > 0) return;
  await eventually(
    `pods of ${deployment.name} are removed`,
    async () => (await podsOf(node, deployment.name, deployment.namespace)).length === 0,
    { deadlineMs: rolloutLimitMs },
  );
}
