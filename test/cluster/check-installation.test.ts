/** `pilot-discovery check` in a real cluster: findings before and after the installation, each with its next step. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { checkCluster } from '../../src/discovery/installation/check-cluster.ts';
import type { ClusterFinding, ClusterReport, InstallationPhase } from '../../src/discovery/installation/findings.ts';
import {
  type ApiResource,
  customResourceDefinitions,
  mutatingWebhookConfigurations,
  resourceOf,
} from '../../src/discovery/kubernetes/api-resource.ts';
import { webhookEntriesOf } from '../../src/injection/decision/webhook-entries.ts';
import { createAuthority } from '../certs/authority.ts';
import { pilotDiscovery } from '../harness/program-files.ts';
import type { ObjectToWrite, Rights } from './cluster.ts';
import { givenOwnServer } from './given-cluster.ts';
import { writeKubeconfig } from './mesh-objects.ts';

const { cluster } = givenOwnServer();
const never = new AbortController().signal;
const system = 'istio-system';
const folder = mkdtempSync(join(tmpdir(), 'cp-check-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const core = { group: '', version: 'v1', namespaced: true } as const;
const nodes: ApiResource = { ...core, plural: 'nodes', kind: 'Node', namespaced: false };
const pods: ApiResource = { ...core, plural: 'pods', kind: 'Pod' };
const deployments: ApiResource = { ...core, group: 'apps', plural: 'deployments', kind: 'Deployment' };
const namespaces = resourceOf('Namespace');

beforeAll(async () => {
  for (const name of [system, 'shop']) await cluster.apply(namespaces, { metadata: { name } });
});

interface CheckOptions {
  readonly phase?: InstallationPhase;
  readonly revision?: string;
  readonly rights?: Rights;
}

async function checked({ phase, revision = '', rights }: CheckOptions = {}): Promise<ClusterReport> {
  const server = rights === undefined ? cluster.admin : await cluster.clientWith(rights);
  const options = { namespace: system, revision, signal: never, now: Date.now() };
  const report = await checkCluster(server, { ...options, ...(phase !== undefined && { phase }) });
  for (const { level, next } of report.findings) expect(next !== undefined).toBe(level !== 'ok');
  return report;
}

const about = ({ findings }: ClusterReport, name: string): string[] =>
  findings.filter(({ check }) => check === name).map(({ level, message }) => `${level}: ${message}`);

const of = ({ findings }: ClusterReport, level: ClusterFinding['level']): ClusterFinding[] =>
  findings.filter((finding) => finding.level === level);

/** Writes an object for one test. */
async function given(resource: ApiResource, object: ObjectToWrite, status?: object): Promise<void> {
  await cluster.apply(resource, object);
  const { name, namespace = resource.namespaced ? cluster.namespace : undefined } = object.metadata;
  const where = { resource, name, ...(namespace !== undefined && { namespace }) };
  if (status !== undefined) {
    const body = { status };
    await cluster.admin.request({ method: 'PATCH', ...where, subresource: 'status', body }, never);
  }
  const query = { gracePeriodSeconds: '0' };
  onTestFinished(() => cluster.admin.request({ method: 'DELETE', ...where, query }, never).then(() => {}));
}

function givenNode(name: string, nodeInfo: object = {}): Promise<void> {
  const usual = { operatingSystem: 'linux', architecture: 'amd64', kernelVersion: '6.1.0', kubeletVersion: 'v1.36.3' };
  const rest = {
    machineID: '',
    systemUUID: '',
    bootID: '',
    osImage: '',
    containerRuntimeVersion: '',
    kubeProxyVersion: '',
  };
  return given(nodes, { metadata: { name } }, { nodeInfo: { ...rest, ...usual, ...nodeInfo } });
}

function injectorOf(name: string, namespace: string, labels: Readonly<Record<string, string>>, caBundle?: string) {
  const service = { name: 'istiod', namespace, path: '/inject', port: 443 };
  const webhooks = webhookEntriesOf(labels['istio.io/rev'] ?? '').map((entry) => ({
    ...{ ...entry, clientConfig: { service, ...(caBundle && { caBundle }) }, sideEffects: 'None' },
    ...{ admissionReviewVersions: ['v1'], failurePolicy: 'Fail', timeoutSeconds: 1 },
    rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
  }));
  return { metadata: { name, labels }, webhooks };
}

const label = (name: string, labels: Readonly<Record<string, string | null>>) =>
  cluster.admin.request({ method: 'PATCH', resource: namespaces, name, body: { metadata: { labels } } }, never);

async function givenLabel(name: string, labels: Readonly<Record<string, string>>): Promise<void> {
  await label(name, labels);
  const none = Object.fromEntries(Object.keys(labels).map((key) => [key, null]));
  onTestFinished(() => label(name, none).then(() => {}));
}

describe('pilot-discovery check before the installation', () => {
  it('reports that a new cluster lacks a node and the Gateway API', async () => {
    const report = await checked();
    expect(report.phase).toBe('before installation');
    expect(about(report, 'API server')).toEqual(['ok: Kubernetes v1.36.3']);
    expect(of(report, 'error').map(({ message }) => message)).toEqual(['the cluster has no node']);
    expect(of(report, 'warning').map(({ message }) => message)).toEqual([
      'not installed: Gateways of the Gateway API cannot be created',
    ]);
    expect(of(report, 'unknown')).toEqual([]);
  });

  it('reports nodes that cannot run pods of the mesh', async () => {
    await givenNode('good');
    await givenNode('windows', { operatingSystem: 'windows' });
    await givenNode('power', { architecture: 'ppc64le' });
    await givenNode('old', { kubeletVersion: 'v1.28.2', architecture: 'arm64' });
    const report = await checked();
    expect(of(report, 'error')).toEqual([]);
    expect(about(report, 'nodes')).toEqual([
      'ok: 2 of 4 run Linux on amd64 or arm64, kernel 6.1.0',
      'warning: not Linux: windows; pods there cannot be in the mesh',
      'warning: no image for the processor of: power',
      'warning: kubelet older than 1.29: old; sidecars are ordinary containers',
    ]);
  });

  it('reports missing permissions of the user, and which checks were skipped as a result', async () => {
    const report = await checked({
      rights: { cluster: [{ apiGroups: [''], resources: ['namespaces'], verbs: ['list', 'create'] }] },
    });
    const missing = about(report, 'permissions');
    expect(missing).toContain('error: this user may not create clusterroles.rbac.authorization.k8s.io');
    expect(missing).toContain(`error: this user may not create secrets in namespace ${system}`);
    expect(missing).not.toContain('error: this user may not create namespaces');
    expect(of(report, 'unknown').map(({ check }) => check)).toEqual([
      ...['definitions', 'nodes', 'webhooks', 'validation', 'admission'],
    ]);
  });

  it('reports CRDs of another owner, and versions that are not served', async () => {
    const [group, plural, kind] = ['telemetry.istio.io', 'telemetries', 'Telemetry'];
    await given(customResourceDefinitions, {
      metadata: { name: `${plural}.${group}`, labels: { app: 'istio-pilot', release: 'istio' } },
      spec: {
        ...{ group, scope: 'Namespaced', names: { plural, kind, singular: 'telemetry' } },
        versions: [{ name: 'v1alpha1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    });
    const found = await expect
      .poll(async () => about(await checked(), 'definitions'), { timeout: 90_000 })
      .toContain('error: telemetries.telemetry.istio.io is not served in version v1, which the control plane reads')
      .then(async () => about(await checked(), 'definitions'));
    expect(found[0]).toMatch(/^ok: 1 of \d\d of Istio's kinds are defined, by istio-pilot$/);
  });

  it('reports an injector of another mesh that selects the same pods as an error, but not one of another revision', async () => {
    await givenNode('good');
    await given(
      mutatingWebhookConfigurations,
      injectorOf('their-injector', 'their-system', { 'istio.io/rev': 'default' }),
    );
    await given(
      mutatingWebhookConfigurations,
      injectorOf('canary-injector', 'their-system', { 'istio.io/rev': 'canary' }),
    );
    expect(about(await checked(), 'webhooks')).toEqual([
      'error: MutatingWebhookConfiguration their-injector selects the same pods: namespaces that you add to the mesh; they would have two sidecars',
    ]);
    expect(about(await checked({ revision: 'other' }), 'webhooks')).toEqual([
      'ok: no other mesh selects the pods of this revision',
    ]);
  });

  it('reports a namespace that rejects the init container of sidecars', async () => {
    await givenLabel('shop', { 'istio-injection': 'enabled', 'pod-security.kubernetes.io/enforce': 'baseline' });
    const [finding, ...furtherFindings] = about(await checked(), 'admission');
    expect(furtherFindings).toEqual([]);
    expect(finding).toMatch(/^error: namespace shop rejects pods whose .*NET_ADMIN/);
  });
});

describe('pilot-discovery check after the installation', () => {
  const authority = createAuthority('root of the mesh');
  const bundle = (certificate: string): string => Buffer.from(certificate).toString('base64');

  async function givenPlane(readyReplicas: number, caBundle?: string): Promise<void> {
    const labels = { app: 'istiod', 'istio.io/rev': 'default' };
    const containers = [{ name: 'discovery', image: 'a.test/discovery:1' }];
    const metadata = { name: 'istiod', namespace: system, labels };
    const spec = {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    };
    await given(deployments, { metadata, spec }, { replicas: 2, readyReplicas });
    const injector = injectorOf('istio-sidecar-injector', system, { 'istio.io/rev': 'default' }, caBundle);
    await given(mutatingWebhookConfigurations, injector);
    const configMaps = resourceOf('ConfigMap');
    const root = { name: 'istio-ca-root-cert', namespace: system };
    await given(configMaps, { metadata: root, data: { 'root-cert.pem': authority.certificate } });
    const values = { global: { hub: 'a.test', tag: '1', proxy: { image: 'agent' }, proxy_init: { image: 'agent' } } };
    const settings = { name: 'istio-sidecar-injector', namespace: system };
    await given(configMaps, { metadata: settings, data: { values: JSON.stringify(values) } });
  }

  it('reports a control plane that is not ready or has no endpoints or CA bundles', async () => {
    await givenPlane(0);
    const report = await checked();
    expect(report.phase).toBe('after installation');
    expect(of(report, 'error').map(({ message }) => message)).toEqual([
      'istiod: 0 of 2 replicas are ready',
      `istiod.${system} has no ready endpoint: webhooks and proxies cannot reach the control plane`,
      'istio-sidecar-injector: 4 of 4 entries have no caBundle, so the API server cannot call them',
    ]);
    expect(about(report, 'namespaces')).toEqual(['warning: no namespace is in the mesh']);
  });

  it('reports a CA bundle without the root of the mesh', async () => {
    await givenPlane(1, bundle(createAuthority('another root').certificate));
    const report = await checked();
    expect(about(report, 'deployment')).toEqual(['warning: istiod: 1 of 2 replicas are ready']);
    expect(about(report, 'webhook')).toEqual([
      'error: istio-sidecar-injector: caBundle does not contain the root of the mesh (ConfigMap istio-ca-root-cert)',
    ]);
  });

  it('reports pods without a sidecar, old sidecars, wrong labels and an unreachable webhook', async () => {
    const pod = (name: string, containers: readonly string[], labels = {}): Promise<void> =>
      given(pods, {
        metadata: { name, namespace: 'shop', labels },
        spec: { containers: containers.map((image) => ({ name: image.includes('/') ? 'istio-proxy' : 'app', image })) },
      });
    await pod('plain', ['cart']);
    await pod('current', ['cart', 'a.test/agent:1']);
    await pod('outdated', ['cart', 'a.test/agent:0']);
    await pod('excluded', ['cart'], { 'sidecar.istio.io/inject': 'false' });
    await givenPlane(2, bundle(authority.certificate));
    await givenLabel('shop', { 'istio-injection': 'enabled' });
    await givenLabel(cluster.namespace, { 'istio.io/rev': 'unknown' });
    const slices = resourceOf('EndpointSlice');
    await given(slices, {
      metadata: { name: 'istiod', namespace: system, labels: { 'kubernetes.io/service-name': 'istiod' } },
      ...{ addressType: 'IPv4', ports: [], endpoints: [{ addresses: ['192.0.2.1'], conditions: { ready: true } }] },
    });
    const report = await checked();
    expect(about(report, 'deployment')).toEqual(['ok: istiod: 2 of 2 replicas are ready']);
    expect(about(report, 'service')).toEqual([`ok: istiod.${system} has 1 ready endpoints`]);
    expect(about(report, 'webhook')).toEqual([
      'ok: istio-sidecar-injector: all entries (4) trust the root of the mesh',
    ]);
    expect(about(report, 'namespaces')).toEqual([
      'ok: in the mesh: shop',
      `warning: ${cluster.namespace}: label istio.io/rev=unknown names a revision that does not exist: its pods have no sidecar`,
    ]);
    expect(about(report, 'pods')).toEqual(['warning: shop: 1 of 3 pods have no sidecar: plain']);
    expect(about(report, 'versions')).toEqual([
      'warning: shop: 1 sidecars run a.test/agent:0; new ones get a.test/agent:1',
    ]);
    expect(about(report, 'injection')).toEqual([
      expect.stringMatching(/^error: pods of namespace shop cannot be created: .*failed calling webhook/),
    ]);
  });
});

describe('pilot-discovery check', () => {
  async function run(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    const { executable, args: programArguments } = pilotDiscovery();
    return new Promise((resolve) => {
      const env = { PATH: process.env.PATH, HOME: folder };
      execFile(executable, [...programArguments, 'check', ...args], { env }, (error, stdout, stderr) => {
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr });
      });
    });
  }

  it('exits with 0 if there are no errors, 1 if there are errors, and 2 if it cannot read the cluster', async () => {
    const kubeconfig = join(folder, 'config');
    writeKubeconfig(kubeconfig, cluster);
    const without = await run('--kubeconfig', kubeconfig);
    expect(without).toMatchObject({ code: 1, stderr: '' });
    expect(without.stdout).toContain('error    nodes        the cluster has no node\n');
    await givenNode('good');
    const report = await run('--kubeconfig', kubeconfig, '-o', 'json');
    expect(report).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(report.stdout)).toMatchObject({ phase: 'before installation', namespace: system });
    writeKubeconfig(kubeconfig, cluster, 'unknown-token');
    expect(await run('--kubeconfig', kubeconfig)).toMatchObject({ code: 2, stdout: '' });
    expect(await run()).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('.kube/config') });
  });
});
