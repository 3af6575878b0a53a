/** The webhook `/inject` as a real API server calls it. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { ApiError } from '../../src/discovery/kubernetes/api-failure.ts';
import { mutatingWebhookConfigurations, resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import type { KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { givenCluster } from './given-cluster.ts';
import { writeKubeconfig } from './mesh-objects.ts';

const cluster = givenCluster();
const neverAborted = new AbortController().signal;
const folder = mkdtempSync(join(tmpdir(), 'cp-injection-'));
const kubeconfig = join(folder, 'config');
let serviceAccountName: string;
const secondNamespace = `${cluster.namespace}-old`;

beforeAll(async () => {
  writeKubeconfig(kubeconfig, cluster);
  serviceAccountName = await cluster.account();
});
afterEach(stopControlPlanes);
afterAll(async () => {
  await deleteWebhook().catch(() => {});
  await deleteWebhook(secondNamespace).catch(() => {});
  rmSync(folder, { recursive: true, force: true });
});

async function startPlane(): Promise<{ plane: ControlPlane; port: number }> {
  const plane = new ControlPlane(
    {
      ...{ registries: 'Kubernetes', configDir: '', kubeconfig, namespace: cluster.namespace },
      ...{ secureGRPCAddr: '127.0.0.1:0', httpsAddr: '127.0.0.1:0' },
    },
    {},
    () => {},
    {
      ...{ SELF_SIGNED_CA_SECRET: 'istio-ca-secret', ISTIOD_CUSTOM_HOST: 'localhost' },
      // Other files of the run deploy Gateways in the same cluster.
      PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER: 'false',
    },
  );
  await plane.ready();
  const { address } = await eventually('the webhooks are served', () =>
    plane.records.flatMap((r) => (r.kind === 'event' && r.event.type === 'webhooks.listening' ? [r.event] : [])).at(0),
  );
  return { plane, port: Number(String(address).split(':').at(-1)) };
}

/** Omits `caBundle`, which the control plane writes. */
async function writeWebhook(
  port: number,
  failurePolicy: 'Fail' | 'Ignore',
  name = cluster.namespace,
  revision = 'default',
): Promise<void> {
  await deleteWebhook(name).catch(() => {});
  const webhook = {
    ...{ name: 'rev.namespace.sidecar-injector.istio.io', failurePolicy, sideEffects: 'None', timeoutSeconds: 10 },
    admissionReviewVersions: ['v1'],
    clientConfig: { url: `https://localhost:${port}/inject/cluster/west` },
    rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] }],
    // Other files of the run create pods in their own namespaces.
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': cluster.namespace } },
  };
  const body = {
    ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: mutatingWebhookConfigurations.kind },
    ...{ metadata: { name, labels: { 'istio.io/rev': revision } }, webhooks: [webhook] },
  };
  await cluster.admin.request({ method: 'POST', resource: mutatingWebhookConfigurations, body }, neverAborted);
}

async function deleteWebhook(name = cluster.namespace): Promise<void> {
  await cluster.admin.request({ method: 'DELETE', resource: mutatingWebhookConfigurations, name }, neverAborted);
}

interface PodSpec {
  readonly containers: readonly { readonly name: string; readonly env?: readonly object[] }[];
  readonly initContainers?: readonly { readonly name: string; readonly env?: readonly object[] }[];
}

let pods = 0;
async function createPod(annotations: Record<string, string> = {}): Promise<PodSpec> {
  const pod: KubernetesObject = await cluster.create(resourceOf('Pod'), {
    metadata: { name: `web-${pods++}`, annotations },
    spec: { serviceAccountName, containers: [{ name: 'app', image: 'app' }] },
  });
  return pod.spec as PodSpec;
}

async function rejectionOf(annotations: Record<string, string> = {}): Promise<string> {
  const error: unknown = await createPod(annotations).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return error instanceof ApiError ? error.message : '';
}

/** Warnings of the API server when a pod is created as a dry run. */
async function warningsOfPod(): Promise<string[]> {
  const { url, ca, adminToken } = cluster.address;
  const path = `${url}/api/v1/namespaces/${cluster.namespace}/pods?dryRun=All`;
  const headers = { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' };
  const clientRequest = request(path, { method: 'POST', ca, headers });
  clientRequest.end(
    JSON.stringify({
      ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: `warned-${pods++}` } },
      spec: { serviceAccountName, containers: [{ name: 'app', image: 'app' }] },
    }),
  );
  const [response] = (await once(clientRequest, 'response')) as [IncomingMessage];
  response.resume();
  return [response.headers.warning ?? []].flat() as string[];
}

const settings = { values: JSON.stringify({ global: { hub: 'example.com', tag: '1' } }) };
const configMap = { metadata: { name: 'istio-sidecar-injector' }, data: settings };

it('the injection webhook adds a sidecar, names the annotation in a rejection, and fails by its failure policy while unavailable', async () => {
  const { plane, port } = await startPlane();
  await writeWebhook(port, 'Fail');
  await eventually('the rejection names the ConfigMap that is missing', async () =>
    (await rejectionOf()).includes(`ConfigMap ${cluster.namespace}/istio-sidecar-injector`),
  );
  await cluster.create(resourceOf('ConfigMap'), configMap);
  const injected = await eventually('the pod has a sidecar', async () => {
    const { initContainers = [] } = await createPod();
    return initContainers.find(({ name }) => name === 'istio-proxy');
  });
  expect(injected.env).toContainEqual({ name: 'ISTIO_META_CLUSTER_ID', value: 'west' });
  expect(await rejectionOf({ 'sidecar.istio.io/proxyCPU': 'many' })).toMatch(
    new RegExp(`denied the request: .*pod ${cluster.namespace}/web-\\d+: .*sidecar.istio.io/proxyCPU`),
  );
  expect((await plane.get('/metrics')).text).toMatch(/^sidecar_injection_success_total [1-9]/m);
  await plane.stop();
  expect(await rejectionOf()).toContain('failed calling webhook');
  await writeWebhook(port, 'Ignore');
  const spec = await eventually('a pod is created without a sidecar', () => createPod());
  expect(spec.containers.map(({ name }) => name)).toEqual(['app']);
});

it('a pod that two webhook configurations select has one sidecar, and the log, the page and an API server warning name both', async () => {
  await cluster.apply(resourceOf('ConfigMap'), configMap);
  const { plane, port } = await startPlane();
  await writeWebhook(port, 'Fail');
  await writeWebhook(port, 'Fail', secondNamespace, 'default');
  const names = `${cluster.namespace}, ${secondNamespace}`;
  await eventually('the overlap is logged', () =>
    plane.lines.find((line) => line.includes('pods selected by two webhook configurations') && line.includes(names)),
  );
  const page = JSON.parse((await plane.get('/debug/inject')).text) as { overlaps: { configurations: string[] }[] };
  expect(page.overlaps.map(({ configurations }) => configurations)).toContainEqual([
    cluster.namespace,
    secondNamespace,
  ]);
  const { containers, initContainers = [] } = await eventually('the pod is injected by both', () => createPod());
  expect(containers.map(({ name }) => name)).toEqual(['app']);
  expect(initContainers.map(({ name }) => name)).toEqual(['istio-init', 'istio-proxy']);
  expect((await warningsOfPod()).join('\n')).toContain(`MutatingWebhookConfigurations ${names} all inject this pod`);
  await deleteWebhook(secondNamespace);
  await eventually('the end is logged', () =>
    plane.lines.find((line) => line.includes('webhook configurations select different pods again')),
  );
  expect(await warningsOfPod()).toEqual([]);
});
