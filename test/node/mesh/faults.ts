/** Pods are replaced, programs of the node restarted and the control plane is unavailable, while a client sends requests to a server. */
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { resourceOf, validatingWebhookConfigurations } from '../../../src/discovery/kubernetes/api-resource.ts';
import { eventually } from '../../harness/eventually.ts';
import { isFull } from '../../harness/size-of-run.ts';
import { pauseImage } from '../node-configuration.ts';
import { resources } from '../resources.ts';
import type { RunningNode } from '../start-node.ts';
import { podsOf, readyPods } from '../workloads.ts';
import { EndpointChanges } from './endpoint-changes.ts';
import { type InstalledMesh, systemNamespace } from './installed-mesh.ts';
import { rollOut, scale } from './rollouts.ts';

const neverAborted = new AbortController().signal;
const controlPlane = { name: 'istiod', namespace: systemNamespace };
const rollouts = 50;
/** A rollout takes 12 s on idle processors, and 40 s next to ten other programs. */
const rolloutsLimitMs = 3_600_000;

/** @param mesh mesh with client, two pods of server and two control plane replicas */
export function testFaults(mesh: () => InstalledMesh): void {
  const names = async (app: string, namespace?: string): Promise<string[]> =>
    (await podsOf(mesh().node, app, namespace))
      // Excludes draining pods.
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map(({ metadata }) => metadata.name);

  describe('no request fails while', () => {
    // Each test counts its own requests.
    let changes: EndpointChanges;
    beforeEach(async () => {
      await mesh().results();
      changes = new EndpointChanges(mesh().node, 'server');
      await mesh().startLoad('http://server/slow');
    });
    afterEach(async () => {
      changes.stop();
      const load = await mesh().load();
      console.error(`requests of the load: ${load.sent}, failed: ${load.failed.length}`);
      expect(load.failed.slice(0, 10), changes.lines.join('\n')).toEqual([]);
      expect(load.sent).toBeGreaterThan(0);
    });
    afterAll(() =>
      mesh()
        .results()
        .then(() => {}),
    );

    it('both replicas of the control plane are replaced', async () => {
      const previous = await names('istiod', systemNamespace);
      await rollOut(mesh().node, controlPlane);
      const podsAfter = await readyPods(mesh().node, 'istiod', 2, systemNamespace);
      expect(previous).toHaveLength(2);
      expect(podsAfter.filter(({ metadata }) => previous.includes(metadata.name))).toEqual([]);
    });

    // The other tests take minutes, or a third of a minute of processor time.
    if (!isFull) return;

    it('kubelet and containerd are killed and restarted, and no container restarts', async () => {
      const { node } = mesh();
      const containers = async (): Promise<unknown> =>
        (await podsOf(node, 'server')).map(({ metadata, status }) => {
          const { containerStatuses } = status as { containerStatuses: { containerID: string }[] };
          return [metadata.name, containerStatuses.map(({ containerID }) => containerID)];
        });
      const previous = await containers();
      // The kubelet exits if containerd does not respond yet, and no process restarts it here.
      for (const program of ['kubelet', 'containerd'] as const) {
        await node.restart(program);
        await startPod(node, `after-${program}`);
      }
      expect(await containers()).toEqual(previous);
    });

    it(
      `the server is rolled out ${rollouts} times`,
      async () => {
        for (let i = 0; i < rollouts; i++) await rollOut(mesh().node, { name: 'server' });
      },
      rolloutsLimitMs,
    );

    it('no webhook responds: its failure policy decides about pods and objects, and missing pods start afterwards', async () => {
      const { node } = mesh();
      await scale(node, controlPlane, 0);
      // Not a pod of the server: without a control plane, clients would not be notified of the removed endpoint.
      const [deleted = ''] = await names('excluding');
      await node.cluster.delete(resources.Pod, deleted);
      const event = await eventually('the ReplicaSet reports the webhook', () => failedCreation(mesh()));
      expect(event).toMatch(/failed calling webhook "[\w.-]*namespace\.sidecar-injector\.istio\.io"/);
      for (const policy of ['Fail', 'Ignore']) {
        await setPolicy(mesh(), policy);
        const outcome = await eventually('the API server uses the policy', async () => {
          const writeResult = await write(mesh());
          return writeResult.isAccepted === (policy === 'Ignore') && writeResult;
        });
        expect(outcome.message).toMatch(policy === 'Ignore' ? /^$/ : /failed calling webhook "validation.istio.io"/);
      }
      await scale(node, controlPlane, 2);
      const pods = await readyPods(node, 'excluding');
      for (const { spec } of pods) {
        const { initContainers = [] } = spec as { initContainers?: { name: string }[] };
        expect(initContainers.map(({ name }) => name)).toContain('istio-proxy');
      }
    });
  });
}

/** Starts and removes a pod, which needs kubelet and containerd. */
async function startPod(node: RunningNode, name: string): Promise<void> {
  const metadata = { name, labels: { app: name, 'sidecar.istio.io/inject': 'false' } };
  const container = { name: 'app', image: pauseImage, imagePullPolicy: 'Never' };
  const spec = { terminationGracePeriodSeconds: 0, containers: [container] };
  await node.cluster.apply(resources.Pod, { metadata, spec });
  await readyPods(node, name);
  await node.cluster.delete(resources.Pod, name);
}

/** The message of a ReplicaSet whose pod is rejected. */
async function failedCreation({ node: { cluster } }: InstalledMesh): Promise<string | undefined> {
  const resource = { group: '', version: 'v1', kind: 'Event', plural: 'events', namespaced: true };
  const query = { fieldSelector: 'reason=FailedCreate' };
  const { items } = (await cluster.admin.request(
    { method: 'GET', resource, namespace: cluster.namespace, query },
    neverAborted,
  )) as unknown as { items: readonly { message: string }[] };
  return items.find(({ message }) => message.includes('failed calling webhook'))?.message;
}

async function setPolicy({ node: { cluster } }: InstalledMesh, policy: string): Promise<void> {
  const [name, resource] = ['istiod-default-validator', validatingWebhookConfigurations];
  const body = [{ op: 'replace', path: '/webhooks/0/failurePolicy', value: policy }];
  await cluster.admin.request({ method: 'PATCH', patch: 'json', resource, name, body }, neverAborted);
}

async function write({ node: { cluster } }: InstalledMesh): Promise<{ isAccepted: boolean; message: string }> {
  const metadata = { name: 'while-away' };
  const spec = { hosts: ['away.example.com'], http: [{ route: [{ destination: { host: 'server' } }] }] };
  try {
    await cluster.apply(resourceOf('VirtualService'), { metadata, spec });
    await cluster.delete(resourceOf('VirtualService'), metadata.name);
    return { isAccepted: true, message: '' };
  } catch (error) {
    return { isAccepted: false, message: String(error) };
  }
}
