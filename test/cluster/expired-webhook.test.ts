/** The mesh's root, and with it the webhooks' certificate, expires while no control plane replica runs. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type PeerCertificate } from 'node:tls';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { generateRoot } from '../../src/discovery/ca/generate-root.ts';
import { mutatingWebhookConfigurations, resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { Program } from '../harness/program.ts';
import { pilotDiscovery } from '../harness/program-files.ts';
import { givenCluster } from './given-cluster.ts';
import { writeKubeconfig } from './mesh-objects.ts';

const cluster = givenCluster();
const secretName = 'istio-ca-secret';
const neverAborted = new AbortController().signal;
const folder = mkdtempSync(join(tmpdir(), 'cp-expired-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function startControlPlane(webhooks: number): Promise<Program> {
  const [securePort, plain, http] = (await freePorts(3)) as [number, number, number];
  const kubeconfig = join(folder, 'config');
  writeKubeconfig(kubeconfig, cluster);
  const { executable, args } = pilotDiscovery();
  const at = (port: number): string => `127.0.0.1:${port}`;
  const program = Program.run('control plane', executable, {
    args: [
      ...[...args, 'discovery', '--registries', 'Kubernetes', '--kubeconfig', kubeconfig],
      ...['--secureGRPCAddr', at(securePort), '--grpcAddr', at(plain), '--httpAddr', at(http), '--monitoringAddr='],
      ...['--httpsAddr', at(webhooks)],
    ],
    env: {
      ...process.env,
      ...{ POD_NAME: 'expiring', POD_NAMESPACE: cluster.namespace, ISTIOD_CUSTOM_HOST: 'localhost' },
      ...{ SELF_SIGNED_CA_SECRET: secretName, PILOT_CA_CERT_CONFIGMAP: `root-of-${cluster.namespace}` },
    },
    cwd: folder,
  });
  onTestFinished(async () => void (await program.stop({ signal: 'SIGKILL' })));
  const isReady = async () => (await fetch(`http://${at(http)}/ready`)).status === 200;
  await eventually('the control plane is ready', isReady, { hopeless: () => program.hopeless() });
  return program;
}

/** A root as the control plane wrote it a day ago. */
async function createExpiredRoot(): Promise<void> {
  const dayAgo = new Date(Date.now() - 24 * 3_600_000);
  const { issuer } = await generateRoot({ trustDomain: 'cluster.local', ttlMs: 3_600_000, rsaBits: 0 }, dayAgo);
  const { certificate, privateKey } = issuer;
  const encodeBase64 = (text: string): string => Buffer.from(text).toString('base64');
  const key = privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
  await cluster.create(resourceOf('Secret'), {
    metadata: { name: secretName },
    type: 'istio.io/ca-root',
    data: { 'ca-cert.pem': encodeBase64(certificate.pem), 'ca-key.pem': encodeBase64(key) },
  });
}

async function configureInjection(port: number): Promise<void> {
  const values = JSON.stringify({ global: { hub: 'example.com', tag: '1' } });
  await cluster.create(resourceOf('ConfigMap'), { metadata: { name: 'istio-sidecar-injector' }, data: { values } });
  const webhook = {
    ...{ name: 'rev.namespace.sidecar-injector.istio.io', failurePolicy: 'Fail', sideEffects: 'None' },
    ...{ timeoutSeconds: 5, admissionReviewVersions: ['v1'] },
    clientConfig: { url: `https://localhost:${port}/inject` },
    rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] }],
    // Other files of the run create pods in their own namespaces.
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': cluster.namespace } },
  };
  const metadata = { name: cluster.namespace, labels: { 'istio.io/rev': 'default' } };
  const resource = mutatingWebhookConfigurations;
  const body = { apiVersion: 'admissionregistration.k8s.io/v1', kind: resource.kind, metadata, webhooks: [webhook] };
  await cluster.admin.request({ method: 'POST', resource, body }, neverAborted);
  onTestFinished(async () => {
    await cluster.admin.request({ method: 'DELETE', resource, name: metadata.name }, neverAborted);
  });
}

let pods = 0;
/** @returns whether the pod gets a sidecar; rejects if the webhook cannot be called */
async function isInjected(serviceAccountName: string): Promise<boolean> {
  const { spec } = await cluster.create(resourceOf('Pod'), {
    metadata: { name: `web-${pods++}` },
    spec: { serviceAccountName, containers: [{ name: 'app', image: 'app' }] },
  });
  const { initContainers = [] } = spec as { initContainers?: readonly { name: string }[] };
  return initContainers.some(({ name }) => name === 'istio-proxy');
}

function certificateAt(port: number): Promise<PeerCertificate> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, servername: 'localhost', rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate());
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

it('pods are injected after the mesh root has expired, because the root is replaced without an operator or a restart', async () => {
  const [port] = (await freePorts(1)) as [number];
  await createExpiredRoot();
  const program = await startControlPlane(port);
  await configureInjection(port);
  const account = await cluster.account();
  // Other replicas have a minute to read the new root before it is used for signing.
  const limits = { deadlineMs: 180_000, hopeless: () => program.hopeless() };
  await eventually('a pod is injected', () => isInjected(account), limits);
  expect(Date.parse((await certificateAt(port)).valid_to)).toBeGreaterThan(Date.now());
});
