/** Objects of a node test: applied from manifests, and read until they have the expected state. */
import { parseAllDocuments } from 'yaml';
import type { KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import type { ObjectToWrite } from '../cluster/cluster.ts';
import { eventually } from '../harness/eventually.ts';
import { hasCondition, resourceOfObject, resources } from './resources.ts';
import type { RunningNode } from './start-node.ts';

const neverAborted = new AbortController().signal;
/** Maximum time in milliseconds for a mesh with ten pods on two processors that run ten other programs. */
const readyLimitMs = 300_000;

export function objectsIn(manifests: string): KubernetesObject[] {
  return parseAllDocuments(manifests).flatMap((document) => (document.toJS() as KubernetesObject | null) ?? []);
}

/** Applies the objects of a YAML stream, by default in the tests' namespace. */
export async function applyManifests(
  { cluster }: RunningNode,
  manifests: string,
  namespace = cluster.namespace,
): Promise<void> {
  for (const object of objectsIn(manifests)) {
    const metadata = { namespace, ...object.metadata };
    await cluster.apply(resourceOfObject(object), { ...object, metadata } as ObjectToWrite);
  }
}

/** Lists pods with the label `app`, by default in the tests' namespace. */
export async function podsOf({ cluster }: RunningNode, app: string, namespace = cluster.namespace) {
  const query = { labelSelector: `app=${app}` };
  // Not `list`, which keeps only the fields that the control plane reads.
  const pods = await cluster.admin.request({ method: 'GET', resource: resources.Pod, namespace, query }, neverAborted);
  return (pods as unknown as { items: readonly KubernetesObject[] }).items;
}

/** Waits until all pods of an application are ready, and returns them; fails with the state of each pod. */
export async function readyPods(node: RunningNode, app: string, count = 1, namespace?: string) {
  let pods: readonly KubernetesObject[] = [];
  try {
    return await eventually(
      `${count} pods of ${app} are ready`,
      async () => {
        pods = await podsOf(node, app, namespace);
        return pods.length === count && pods.every((pod) => hasCondition(pod, 'Ready')) && pods;
      },
      { deadlineMs: readyLimitMs },
    );
  } catch (error) {
    const states = pods.map(({ metadata, status }) => `${metadata.name}: ${JSON.stringify(status)}`);
    throw new Error(`pods of ${app}:\n${states.join('\n')}\n${node.lastLines()}`, { cause: error });
  }
}

export function addressOf({ status }: KubernetesObject): string {
  return (status as { podIP: string }).podIP;
}

/** One address of each IP family; the first one is {@link addressOf}. */
export function addressesOf({ status }: KubernetesObject): string[] {
  return (status as { podIPs: readonly { ip: string }[] }).podIPs.map(({ ip }) => ip);
}
