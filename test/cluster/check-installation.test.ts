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
const neverAborted = new AbortController().signal;
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

async function runCheck({ phase, revision = '', rights }: CheckOptions = {}): Promise<ClusterReport> {
  const server = rights === undefined ? cluster.admin : await cluster.clientWith(rights);
  const options = { namespace: system, revision, signal: neverAborted, now: Date.now() };
  const report = await checkCluster(server, { ...options, ...(phase !== undefined && { phase }) });
  for (const { level, next } of report.findings) expect(next !== undefined).toBe(level !== 'ok');
  return report;
}

const findingsAbout = ({ findings }: ClusterReport, name: string): string[] =>
  findings.filter(({ check }) => check === name).map(({ level, message }) => `${level}: ${message}`);

const of = ({ findings }: ClusterReport, level: ClusterFinding['level']): ClusterFinding[] =>
  findings.filter((finding) => finding.level === level);

/** Writes an object for one test. */
async function createObject(resource: ApiResource, object: ObjectToWrite, status?: object): Promise<void> {
  await cluster.apply(resource, object);
  const { name, namespace = resource.namespaced ? cluster.namespace : undefined } = object.metadata;
  const target = { resource, name, ...(namespace !== undefined && { namespace }) };
  if (status !== undefined) {
    const body = { status };
    await cluster.admin.request({ method: 'PATCH', ...target, subresource: 'status', body }, neverAborted);
  }
  const query = { gracePeriodSeconds: '0' };
  onTestFinished(() => cluster.admin.request({ method: 'DELETE', ...target, query }, neverAborted).then(() => {}));
}

function createNode(name: string, nodeInfo: object = {}): Promise<void> {
  const defaultInfo = {
    operatingSystem: 'linux',
    architecture: 'amd64',
    kernelVersion: '6.1.0',
    kubeletVersion: 'v1.36.3',
  };
  const emptyInfo = {
    machineID: '',
    systemUUID: '',
    bootID: '',
    osImage: '',
    containerRuntimeVersion: '',
    kubeProxyVersion: '',
  };
  return createObject(nodes, { metadata: { name } }, { nodeInfo: { ...emptyInfo, ...defaultInfo, ...nodeInfo } });
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
  cluster.admin.request({ method: 'PATCH', resource: namespaces, name, body: { metadata: { labels } } }, neverAborted);

async function addLabel(name: string, labels: Readonly<Record<string, string>>): Promise<void> {
  await label(name, labels);
  const none = Object.fromEntries(Object.keys(labels).map((key) => [key, null]));
  onTestFinished(() => label(name, none).then(() => {}));
}

describe('pilot-discovery check before the installation', () => {
  it('reports that a new cluster lacks a node and the Gateway API', async () => {
    const report = await runCheck();
    expect(report.phase).toBe('before installation');
    expect(findingsAbout(report, 'API server')).toEqual(['ok: Kubernetes v1.36.3']);
    expect(of(report, 'error').map(({ message }) => message)).toEqual(['the cluster has no node']);
    expect(of(report, 'warning').map(({ message }) => message)).toEqual([
      'not installed: Gateways of the Gateway API cannot be created',
    ]);
    expect(of(report, 'unknown')).toEqual([]);
  });

  it('reports nodes that cannot run pods of the mesh', async () => {
    await createNode('good');
    await createNode('windows', { operatingSystem: 'windows' });
    await createNode('power', { architecture: 'ppc64le' });
    await createNode('old', { kubeletVersion: 'v1.28.2', architecture: 'arm64' });
    const report = await runCheck();
    expect(of(report, 'error')).toEqual([]);
    expect(findingsAbout(report, 'nodes')).toEqual([
      'ok: 2 of 4 run Linux on amd64 or arm64, kernel 6.1.0',
      'warning: not Linux: windows; pods there cannot be in the mesh',
      'warning: no image for the processor of: power',
      'warning: kubelet older than 1.29: old; sidecars are ordinary containers',
    ]);
  });

  it('reports missing permissions of the user, and which checks were skipped as a result', async () => {
    const report = await runCheck({
      rights: { cluster: [{ apiGroups: [''], resources: ['namespaces'], verbs: ['list', 'create'] }] },
    });
    const missingPermissions = findingsAbout(report, 'permissions');
    expect(missingPermissions).toContain('error: this user may not create clusterroles.rbac.authorization.k8s.io');
    expect(missingPermissions).toContain(`error: this user may not create secrets in namespace ${system}`);
    expect(missingPermissions).not.toContain('error: this user may not create namespaces');
    expect(of(report, 'unknown').map(({ check }) => check)).toEqual([
      ...['definitions', 'nodes', 'webhooks', 'validation', 'admission'],
    ]);
  });

  it('reports CRDs of another owner, and versions that are not served', async () => {
    const [group, plural, kind] = ['telemetry.istio.io', 'telemetries', 'Telemetry'];
    await createObject(customResourceDefinitions, {
      metadata: { name: `${plural}.${group}`, labels: { app: 'istio-pilot', release: 'istio' } },
      spec: {
        ...{ group, scope: 'Namespaced', names: { plural, kind, singular: 'telemetry' } },
        versions: [{ name: 'v1alpha1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    });
    const foundDefinitions = await expect
      .poll(async () => findingsAbout(await runCheck(), 'definitions'), { timeout: 90_000 })
      .toContain('error: telemetries.telemetry.istio.io is not served in version v1, which the control plane reads')
      .then(async () => findingsAbout(await runCheck(), 'definitions'));
    expect(foundDefinitions[0]).toMatch(/^ok: 1 of \d\d of Istio's kinds are defined, by istio-pilot$/);
  });

  it('reports an injector of another mesh that selects the same pods as an error, but not one of another revision', async () => {
    await createNode('good');
    await createObject(
      mutatingWebhookConfigurations,
      injectorOf('their-injector', 'their-system', { 'istio.io/rev': 'default' }),
    );
    await createObject(
      mutatingWebhookConfigurations,
      injectorOf('canary-injector', 'their-system', { 'istio.io/rev': 'canary' }),
    );
    expect(findingsAbout(await runCheck(), 'webhooks')).toEqual([
      'error: MutatingWebhookConfiguration their-injector selects the same pods: namespaces that you add to the mesh; they would have two sidecars',
    ]);
    expect(findingsAbout(await runCheck({ revision: 'other' }), 'webhooks')).toEqual([
      'ok: no other mesh selects the pods of this revision',
    ]);
  });

  it('reports a namespace that rejects the init container of sidecars', async () => {
    await addLabel('shop', { 'istio-injection': 'enabled', 'pod-security.kubernetes.io/enforce': 'baseline' });
    const [finding, ...furtherFindings] = findingsAbout(await runCheck(), 'admission');
    expect(furtherFindings).toEqual([]);
    expect(finding).toMatch(/^error: namespace shop rejects pods whose .*NET_ADMIN/);
  });
});

describe('pilot-discovery check after the installation', () => {
  const authority = createAuthority('root of the mesh');
  const bundle = (certificate: string): string => Buffer.from(certificate).toString('base64');

  async function createPlane(readyReplicas: number, caBundle?: string): Promise<void> {
    const labels = { app: 'istiod', 'istio.io/rev': 'default' };
    const containers = [{ name: 'discovery', image: 'a.test/discovery:1' }];
    const metadata = { name: 'istiod', namespace: system, labels };
    const spec = {
      replicas: 2,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    };
    await createObject(deployments, { metadata, spec }, { replicas: 2, readyReplicas });
    const injector = injectorOf('istio-sidecar-injector', system, { 'istio.io/rev': 'default' }, caBundle);
    await createObject(mutatingWebhookConfigurations, injector);
    const configMaps = resourceOf('ConfigMap');
    const root = { name: 'istio-ca-root-cert', namespace: system };
    await createObject(configMaps, { metadata: root, data: { 'root-cert.pem': authority.certificate } });
    const values = { global: { hub: 'a.test', tag: '1', proxy: { image: 'agent' }, proxy_init: { image: 'agent' } } };
    const settings = { name: 'istio-sidecar-injector', namespace: system };
    await createObject(configMaps, { metadata: settings, data: { values: JSON.stringify(values) } });
  }

  it('reports a control plane that is not ready or has no endpoints or CA bundles', async () => {
    await createPlane(0);
    const report = await runCheck();
    expect(report.phase).toBe('after installation');
    expect(of(report, 'error').map(({ message }) => message)).toEqual([
      'istiod: 0 of 2 replicas are ready',
      `istiod.${system} has no ready endpoint: webhooks and proxies cannot reach the control plane`,
      'istio-sidecar-injector: 4 of 4 entries have no caBundle, so the API server cannot call them',
    ]);
    expect(findingsAbout(report, 'namespaces')).toEqual(['warning: no namespace is in the mesh']);
  });

  it('reports a CA bundle without the root of the mesh', async () => {
    await createPlane(1, bundle(createAuthority('another root').certificate));
    const report = await runCheck();
    expect(findingsAbout(report, 'deployment')).toEqual(['warning: istiod: 1 of 2 replicas are ready']);
    expect(findingsAbout(report, 'webhook')).toEqual([
      'error: istio-sidecar-injector: caBundle does not contain the root of the mesh (ConfigMap istio-ca-root-cert)',
    ]);
  });

  it('reports pods without a sidecar, old sidecars, wrong labels and an unreachable webhook', async () => {
    const pod = (name: string, containers: readonly string[], labels = {}): Promise<void> =>
      createObject(pods, {
        metadata: { name, namespace: 'shop', labels },
        spec: { containers: containers.map((image) => ({ name: image.includes('/') ? 'istio-proxy' : 'app', image })) },
      });
    await pod('plain', ['cart']);
    await pod('current', ['cart', 'a.test/agent:1']);
    await pod('outdated', ['cart', 'a.test/agent:0']);
    await pod('excluded', ['cart'], { 'sidecar.istio.io/inject': 'false' });
    await createPlane(2, bundle(authority.certificate));
    await addLabel('shop', { 'istio-injection': 'enabled' });
    await addLabel(cluster.namespace, { 'istio.io/rev': 'unknown' });
    const slices = resourceOf('EndpointSlice');
    await createObject(slices, {
      metadata: { name: 'istiod', namespace: system, labels: { 'kubernetes.io/service-name': 'istiod' } },
      ...{ addressType: 'IPv4', ports: [], endpoints: [{ addresses: ['192.0.2.1'], conditions: { ready: true } }] },
    });
    const report = await runCheck();
    expect(findingsAbout(report, 'deployment')).toEqual(['ok: istiod: 2 of 2 replicas are ready']);
    expect(findingsAbout(report, 'service')).toEqual([`ok: istiod.${system} has 1 ready endpoints`]);
    expect(findingsAbout(report, 'webhook')).toEqual([
      'ok: istio-sidecar-injector: all entries (4) trust the root of the mesh',
    ]);
    expect(findingsAbout(report, 'namespaces')).toEqual([
      'ok: in the mesh: shop',
      `warning: ${cluster.namespace}: label istio.io/rev=unknown names a revision that does not exist: its pods have no sidecar`,
    ]);
    expect(findingsAbout(report, 'pods')).toEqual(['warning: shop: 1 of 3 pods have no sidecar: plain']);
    expect(findingsAbout(report, 'versions')).toEqual([
      'warning: shop: 1 sidecars run a.test/agent:0; new ones get a.test/agent:1',
    ]);
    expect(findingsAbout(report, 'injection')).toEqual([
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
    const emptyRun = await run('--kubeconfig', kubeconfig);
    expect(emptyRun).toMatchObject({ code: 1, stderr: '' });
    expect(emptyRun.stdout).toContain('error    nodes        the cluster has no node\n');
    await createNode('good');
    const report = await run('--kubeconfig', kubeconfig, '-o', 'json');
    expect(report).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(report.stdout)).toMatchObject({ phase: 'before installation', namespace: system });
    writeKubeconfig(kubeconfig, cluster, 'unknown-token');
    expect(await run('--kubeconfig', kubeconfig)).toMatchObject({ code: 2, stdout: '' });
    expect(await run()).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('.kube/config') });
  });
});
