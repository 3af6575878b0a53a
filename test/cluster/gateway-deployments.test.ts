/** Gateways that the program deploys in a real API server, with the permissions of the chart. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it } from 'vitest';
import { type ApiResource, events, resourceOf, serviceAccounts } from '../../src/discovery/kubernetes/api-resource.ts';
import type { KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import type { ObjectToWrite } from './cluster.ts';
import { givenOwnServer } from './given-cluster.ts';
import { givenHelm } from './given-helm.ts';
import { defineKinds, of, writeKubeconfig } from './mesh-objects.ts';

// Uses a separate server, because this control plane writes the status of all Gateways and routes.
const { cluster } = givenOwnServer();
const { render } = givenHelm();
const neverAborted = new AbortController().signal;
const folder = mkdtempSync(join(tmpdir(), 'cp-gateways-'));
afterEach(stopControlPlanes);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1' } as const;
const chartKinds: Readonly<Record<string, ApiResource>> = {
  ServiceAccount: serviceAccounts,
  ConfigMap: of.configMaps,
  ClusterRole: { ...rbac, plural: 'clusterroles', kind: 'ClusterRole', namespaced: false },
  ClusterRoleBinding: { ...rbac, plural: 'clusterrolebindings', kind: 'ClusterRoleBinding', namespaced: false },
  Role: { ...rbac, plural: 'roles', kind: 'Role', namespaced: true },
  RoleBinding: { ...rbac, plural: 'rolebindings', kind: 'RoleBinding', namespaced: true },
};
const quotas: ApiResource = {
  ...{ group: '', version: 'v1', plural: 'resourcequotas', kind: 'ResourceQuota', namespaced: true },
};
const deployments: ApiResource = {
  group: 'apps',
  version: 'v1',
  plural: 'deployments',
  kind: 'Deployment',
  namespaced: true,
};

it("a deployed Gateway is updated with its listeners using only the chart's permissions, reports rejections, and adopts no foreign objects", async () => {
  await defineKinds(cluster, ['GatewayClass', 'KubernetesGateway']);
  const objects = await render(cluster.namespace, '--set', 'image.repository=registry.test/mesh/chartpilot');
  for (const object of objects) {
    const resource = chartKinds[object.kind ?? ''];
    if (resource !== undefined) await cluster.apply(resource, object as ObjectToWrite);
  }
  const account = objects.find(({ kind }) => kind === 'ServiceAccount')!.metadata.name;
  const kubeconfig = join(folder, 'kubeconfig');
  writeKubeconfig(kubeconfig, cluster, await cluster.token(account));
  const gateways = resourceOf('KubernetesGateway');
  const listener = (port: number) => ({ name: `p${port}`, port, protocol: 'HTTP' });
  const apply = (name: string, ...ports: number[]) =>
    cluster.apply(gateways, {
      ...{
        metadata: { name },
        spec: { gatewayClassName: 'istio', listeners: ports.map(listener) },
      },
    });
  const foreignService = { metadata: { name: 'taken-istio' }, spec: { ports: [{ port: 1 }], selector: { app: 'a' } } };
  await cluster.apply(of.services, foreignService);
  await apply('front', 80);
  await apply('taken', 80);
  const { namespace } = cluster;
  const read = (resource: ApiResource, name: string): Promise<KubernetesObject> =>
    cluster.admin.request({ method: 'GET', resource, namespace, name }, neverAborted);
  const plane = new ControlPlane(
    {
      ...{ registries: 'Kubernetes', configDir: '', kubeconfig, namespace, secureGRPCAddr: '127.0.0.1:0' },
      httpsAddr: '127.0.0.1:0',
    },
    {},
    () => {},
    { SELF_SIGNED_CA_SECRET: 'istio-ca-secret' },
  );
  await eventually('the Gateway is deployed', async () => (await read(deployments, 'front-istio')) !== undefined);
  const deployment = await read(deployments, 'front-istio');
  const { template } = deployment.spec as { template: { spec: { containers: { image: string }[] } } };
  expect(template.spec.containers[0]!.image).toMatch(/^registry\.test\/mesh\/chartpilot:/);
  const portsOf = async (name: string): Promise<number[]> =>
    ((await read(of.services, name)).spec as { ports: { port: number }[] }).ports.map(({ port }) => port);
  expect(await portsOf('front-istio')).toEqual([15021, 80]);
  await apply('front', 81);
  await eventually('the Service has the other port', async () => (await portsOf('front-istio')).includes(81));
  expect(await portsOf('front-istio')).toEqual([15021, 81]);
  // Unchanged objects are not written again, which would change their version.
  expect((await read(deployments, 'front-istio')).metadata.resourceVersion).toBe(deployment.metadata.resourceVersion);
  await eventually('the conflict of names is logged', async () =>
    plane.lines.some((line) => line.includes(`Service ${namespace}/taken-istio exists`)),
  );
  expect(await portsOf('taken-istio')).toEqual([1]);
  await expect(read(deployments, 'taken-istio')).rejects.toThrow('not found');
  const { items } = await cluster.admin.list(events, { namespace }, neverAborted);
  expect(items.filter(({ reason }) => reason === 'GatewayNotDeployed')).toMatchObject([
    { involvedObject: { kind: 'Gateway', name: 'taken' }, message: expect.stringContaining('taken-istio exists') },
  ]);
  const programmed = async (name: string): Promise<{ reason?: string; message?: string }> => {
    const { status } = await read(gateways, name);
    const { conditions = [] } = (status ?? {}) as { conditions?: { type: string; reason: string; message: string }[] };
    return conditions.find(({ type }) => type === 'Programmed') ?? {};
  };
  await eventually('the status reports the conflict of names', async () =>
    (await programmed('taken')).message?.includes('taken-istio exists'),
  );
  expect(await programmed('taken')).toMatchObject({ status: 'False', reason: 'DeploymentFailed' });
  const hard = { 'count/deployments.apps': '1' };
  await cluster.apply(quotas, { metadata: { name: 'few' }, spec: { hard } });
  // In a cluster, the controller manager writes this status.
  await cluster.apply(quotas, { metadata: { name: 'few' }, status: { hard, used: hard } } as ObjectToWrite, 'status');
  await apply('more', 80);
  await eventually('the status reports the quota', async () => (await programmed('more')).reason === 'NoResources');
  expect(await programmed('more')).toMatchObject({
    status: 'False',
    message: expect.stringContaining('exceeded quota: few'),
  });
  await cluster.admin.request({ method: 'DELETE', resource: quotas, namespace, name: 'few' }, neverAborted);
  await eventually('the Gateway is deployed when the quota is gone', async () => {
    const deployed = await cluster.admin.list(deployments, { namespace }, neverAborted);
    return deployed.items.some(({ metadata }) => metadata.name === 'more-istio');
  });
  await eventually('the status reports no failure', async () => (await programmed('more')).reason !== 'NoResources');
  const replacedSpec = { spec: { template: { spec: { containers: [{ name: 'istio-proxy', image: 'by-hand:1' }] } } } };
  await cluster.patch(deployments, 'front-istio', replacedSpec);
  await eventually('an edit of the Deployment by hand is undone', async () => {
    const { spec } = await read(deployments, 'front-istio');
    return !JSON.stringify(spec).includes('by-hand:1');
  });
  expect(plane.lines.filter((line) => line.includes('forbidden'))).toEqual([]);
});
