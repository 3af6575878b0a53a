/** The webhook `/validate` as a real API server calls it, and the failure policy that the leader sets. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { resourceOf, validatingWebhookConfigurations } from '../../src/discovery/kubernetes/api-resource.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { givenCluster } from './given-cluster.ts';
import { defineKinds, writeKubeconfig } from './mesh-objects.ts';

const cluster = givenCluster();
const neverAborted = new AbortController().signal;
const folder = mkdtempSync(join(tmpdir(), 'cp-validation-'));
const kubeconfig = join(folder, 'config');
const entryName = 'rev.validation.istio.io';

beforeAll(async () => {
  writeKubeconfig(kubeconfig, cluster);
  await defineKinds(cluster, ['Gateway', 'ServiceEntry']);
});
afterEach(stopControlPlanes);
afterAll(async () => {
  await deleteWebhook().catch(() => {});
  rmSync(folder, { recursive: true, force: true });
});

function startPlane(port: number): ControlPlane {
  return new ControlPlane(
    {
      ...{ registries: 'Kubernetes', configDir: '', kubeconfig, namespace: cluster.namespace },
      ...{ secureGRPCAddr: '127.0.0.1:0', httpsAddr: `127.0.0.1:${port}` },
    },
    {},
    () => {},
    { SELF_SIGNED_CA_SECRET: 'istio-ca-secret', ISTIOD_CUSTOM_HOST: 'localhost', REVISION: cluster.namespace },
  );
}

/**
 * Writes the webhook as installed by the chart: without `caBundle`, and with the policy Ignore. Its revision is unique, because control planes of
 * other files have the same host.
 */
async function writeWebhook(port: number): Promise<void> {
  const webhook = {
    ...{ name: entryName, failurePolicy: 'Ignore', sideEffects: 'None', timeoutSeconds: 2 },
    admissionReviewVersions: ['v1'],
    clientConfig: { url: `https://localhost:${port}/validate` },
    rules: [
      {
        ...{ operations: ['CREATE', 'UPDATE'], apiGroups: ['networking.istio.io'], apiVersions: ['*'] },
        resources: ['*'],
      },
    ],
    // Other files of the run write objects in their own namespaces.
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': cluster.namespace } },
    objectSelector: { matchExpressions: [{ key: 'istio.io/rev', operator: 'In', values: [cluster.namespace] }] },
  };
  const body = {
    ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: validatingWebhookConfigurations.kind },
    ...{ metadata: { name: cluster.namespace, labels: { 'istio.io/rev': cluster.namespace } }, webhooks: [webhook] },
  };
  await cluster.admin.request({ method: 'POST', resource: validatingWebhookConfigurations, body }, neverAborted);
}

async function deleteWebhook(): Promise<void> {
  const name = cluster.namespace;
  await cluster.admin.request({ method: 'DELETE', resource: validatingWebhookConfigurations, name }, neverAborted);
}

interface Entry {
  readonly failurePolicy: string;
  readonly clientConfig: { readonly url: string; readonly caBundle?: string };
}

async function entry(): Promise<Entry> {
  const resource = validatingWebhookConfigurations;
  const object = await cluster.admin.request({ method: 'GET', resource, name: cluster.namespace }, neverAborted);
  return (object.webhooks as Entry[])[0]!;
}

async function patchEntry(change: Partial<Entry>): Promise<void> {
  const resource = validatingWebhookConfigurations;
  const object = await cluster.admin.request({ method: 'GET', resource, name: cluster.namespace }, neverAborted);
  const webhooks = (object.webhooks as Entry[]).map((one) => ({ ...one, ...change }));
  await cluster.admin.request({ method: 'PATCH', resource, name: cluster.namespace, body: { webhooks } }, neverAborted);
}

let entries = 0;
async function rejectionOf(host: string): Promise<string> {
  const metadata = { name: `cart-${entries++}`, labels: { 'istio.io/rev': cluster.namespace } };
  const spec = { hosts: [host], ports: [{ number: 80, name: 'http', protocol: 'HTTP' }], resolution: 'DNS' };
  return cluster.create(resourceOf('ServiceEntry'), { metadata, spec }).then(
    () => '',
    (error: unknown) => String(error),
  );
}

it('failurePolicy of the validation webhook becomes Fail after an observed rejection, and remains while the webhook is unreachable', async () => {
  const [port = 0, closedPort = 0] = await freePorts(2);
  const plane = startPlane(port);
  await plane.ready();
  await writeWebhook(closedPort);
  await eventually('the root is written', async () => (await entry()).clientConfig.caBundle !== undefined);
  await eventually('the log says why the policy stays', () =>
    plane.lines.find((line) => line.includes(`failurePolicy of webhook ${entryName} stays Ignore`)),
  );
  expect((await entry()).failurePolicy).toBe('Ignore');
  expect(await rejectionOf('cart.test')).toBe('');

  const { clientConfig } = await entry();
  await patchEntry({ clientConfig: { ...clientConfig, url: `https://localhost:${port}/validate` } });
  await eventually('the policy is Fail', async () => (await entry()).failurePolicy === 'Fail');
  expect(await rejectionOf('not a host')).toContain(`admission webhook "${entryName}" denied the request`);
  expect(await rejectionOf('cart.test')).toBe('');

  await patchEntry({ failurePolicy: 'Ignore' });
  const objects = await cluster.admin.list(resourceOf('Gateway'), { namespace: cluster.namespace }, neverAborted);
  expect(objects.items).toEqual([]);
  await plane.stop();
  await eventually(
    'an object is created while no replica responds',
    async () => (await rejectionOf('cart.test')) === '',
  );
});
