/** The leader of two control planes and its writes, with a real API server. Uses a separate server, because a mesh has one root. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { leases, resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import type { KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { givenOwnServer } from './given-cluster.ts';
import { defineKinds, writeKubeconfig } from './mesh-objects.ts';

const ownServer = givenOwnServer();
const { cluster } = ownServer;
const folder = mkdtempSync(join(tmpdir(), 'cp-leader-'));
const kubeconfig = join(folder, 'config');
const neverAborted = new AbortController().signal;
const [configMaps, namespaces] = [resourceOf('ConfigMap'), resourceOf('Namespace')];
const lease = 'istio-namespace-controller-election';
const root = 'istio-ca-root-cert';

beforeAll(async () => {
  await defineKinds(cluster);
  writeKubeconfig(kubeconfig, cluster);
});
afterEach(stopControlPlanes);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Both control planes have the same authority. */
async function startServing(podName: string): Promise<ControlPlane> {
  const plane = new ControlPlane(
    {
      registries: 'Kubernetes',
      configDir: '',
      kubeconfig,
      namespace: cluster.namespace,
      secureGRPCAddr: '127.0.0.1:0',
    },
    {},
    () => {},
    { SELF_SIGNED_CA_DIR: join(folder, 'ca'), POD_NAME: podName },
  );
  await plane.ready();
  return plane;
}

async function read(resource: typeof configMaps, name: string, namespace = cluster.namespace) {
  try {
    return await cluster.admin.request({ method: 'GET', resource, namespace, name }, neverAborted);
  } catch {
    return undefined;
  }
}

const readHolder = async (): Promise<string> =>
  String((((await read(leases, lease))?.spec ?? {}) as { holderIdentity?: string }).holderIdentity ?? '').split(
    '_',
  )[0]!;
const rootIn = async (namespace: string): Promise<string> => {
  const { data } = ((await read(configMaps, root, namespace)) ?? {}) as { data?: Record<string, string> };
  return data?.['root-cert.pem'] ?? '';
};

it('the leader writes the mesh root to each namespace, restores it after changes, and hands over its Lease', async () => {
  const first = await startServing('one');
  await eventually('the first one leads', async () => (await readHolder()) === 'one');
  await eventually('each namespace has it', async () => (await rootIn(cluster.namespace)).includes('BEGIN CERT'));
  const pem = await rootIn(cluster.namespace);
  await eventually('it is the same in all', async () => (await rootIn('kube-system')) === pem);
  expect([await rootIn('kube-public'), await rootIn('kube-node-lease')]).toEqual(['', '']);
  expect((await read(configMaps, root))!.metadata.labels).toEqual({ 'istio.io/config': 'true' });

  const laterNamespace = `${cluster.namespace}-later`;
  await cluster.apply(namespaces, { metadata: { name: laterNamespace } } as never);
  await eventually('a new namespace has it', async () => (await rootIn(laterNamespace)) === pem);

  await cluster.apply(configMaps, { metadata: { name: root }, data: { 'root-cert.pem': 'another', own: 'kept' } });
  await eventually('what somebody else wrote is overwritten', async () => (await rootIn(cluster.namespace)) === pem);
  expect(((await read(configMaps, root)) as KubernetesObject & { data: object }).data).toMatchObject({ own: 'kept' });
  await cluster.delete(configMaps, root, laterNamespace);
  await eventually('what was deleted is there again', async () => (await rootIn(laterNamespace)) === pem);

  const secondPlane = await startServing('two');
  await first.stop();
  await eventually('the other one leads', async () => (await readHolder()) === 'two');
  await cluster.delete(configMaps, root, laterNamespace);
  await eventually('the other one writes', async () => (await rootIn(laterNamespace)) === pem);

  await cluster.delete(namespaces, laterNamespace);
  expect(secondPlane.unexpectedErrors()).toEqual([]);
  await secondPlane.stop();
  expect(await readHolder()).toBe('');
});
