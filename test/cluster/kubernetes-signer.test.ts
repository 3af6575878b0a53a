/** Certificates through CertificateSigningRequests: a small signer in the test replaces a third-party controller on a real API server. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, credentials } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from 'vitest';
import type { AuthorityMaterial } from '../../src/discovery/ca/authority-material.ts';
import { KubernetesSigner } from '../../src/discovery/ca/cluster-signer/kubernetes-signer.ts';
import { generateRoot } from '../../src/discovery/ca/generate-root.ts';
import { certificateSigningRequests as requests, resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import type { KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import { readCertificate, readCertificates } from '../../src/identity/certificate.ts';
import type { Names } from '../../src/identity/certificate-extensions.ts';
import { findPath } from '../../src/identity/certificate-path.ts';
import { createRequest, requestedNamesIn, verifyRequest } from '../../src/identity/certificate-request.ts';
import { issueLeaf } from '../../src/identity/issue.ts';
import { pemOf } from '../../src/identity/pem.ts';
import { requestCertificateChain } from '../harness/certificate-caller.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import type { Rule } from './cluster.ts';
import { givenCluster } from './given-cluster.ts';
import { writeKubeconfig } from './mesh-objects.ts';

const cluster = givenCluster();
const neverAborted = new AbortController().signal;
const folder = mkdtempSync(join(tmpdir(), 'cp-kubernetes-signer-'));
const kubeconfig = join(folder, 'config');
const hourMs = 3_600_000;
let root: AuthorityMaterial;
let foreignAuthority: AuthorityMaterial;
let signers = 0;

beforeAll(async () => {
  writeKubeconfig(kubeconfig, cluster);
  const createRoot = () => generateRoot({ trustDomain: 'signer.test', ttlMs: 24 * hourMs, rsaBits: 0 }, new Date());
  [root, foreignAuthority] = [await createRoot(), await createRoot()];
});
afterEach(stopControlPlanes);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** How a signer handles one request. */
interface SignerBehavior {
  readonly signingAuthority?: AuthorityMaterial;
  readonly key?: KeyObject;
  readonly names?: Names;
  readonly lifetimeMs?: number;
  readonly condition?: 'Denied' | 'Failed';
}

/** A controller with its own signer name, which signs approved requests. */
function signer(behavior: SignerBehavior | 'nothing' = {}): {
  readonly name: string;
  readonly seen: KubernetesObject[];
} {
  const name = `test.example.com/${cluster.namespace}-${signers++}`;
  const seenRequests: KubernetesObject[] = [];
  let isEnded = false;
  const work = async (): Promise<void> => {
    while (!isEnded) {
      const { items } = await cluster.admin.list(requests, { fieldSelector: `spec.signerName=${name}` }, neverAborted);
      for (const request of items.filter(({ metadata }) =>
        seenRequests.every((one) => one.metadata.uid !== metadata.uid),
      )) {
        const { conditions = [] } = request.status as { conditions?: { type: string }[] };
        if (behavior !== 'nothing' && behavior.condition !== 'Denied' && conditions.length === 0) continue;
        seenRequests.push(request);
        if (behavior !== 'nothing') await act(request, behavior);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const workEnd = work();
  onTestFinished(async () => {
    isEnded = true;
    await workEnd;
  });
  return { name, seen: seenRequests };
}

async function act(request: KubernetesObject, behavior: SignerBehavior): Promise<void> {
  const put = (status: object, subresource: string) => {
    const body = { ...request, status };
    return cluster.admin.request(
      { method: 'PUT', resource: requests, name: request.metadata.name, subresource, body },
      neverAborted,
    );
  };
  const { conditions = [] } = request.status as { conditions?: object[] };
  if (behavior.condition !== undefined) {
    const condition = { type: behavior.condition, status: 'True', reason: 'Policy', message: 'not this one' };
    await put({ conditions: [...conditions, condition] }, behavior.condition === 'Denied' ? 'approval' : 'status');
    return;
  }
  const pem = Buffer.from((request.spec as { request: string }).request, 'base64').toString();
  const {
    signingAuthority = root,
    key = verifyRequest(pem),
    names = requestedNamesIn(pem),
    lifetimeMs = hourMs,
  } = behavior;
  const now = Math.floor(Date.now() / 1_000) * 1_000;
  const lifetime = { notBefore: new Date(now - 60_000), notAfter: new Date(now + lifetimeMs) };
  const certificate = pemOf('CERTIFICATE', issueLeaf(signingAuthority.issuer, key, names, lifetime));
  await put({ conditions, certificate: Buffer.from(certificate).toString('base64') }, 'status');
}

const uri = 'spiffe://cluster.local/ns/shop/sa/cart';
const ownKey = generateKeyPairSync('ec', { namedCurve: 'P-256' });

function client(signerName: string, overrides: Partial<ConstructorParameters<typeof KubernetesSigner>[0]> = {}) {
  const server = cluster.client();
  const options = { server, signerName, approvesRequests: true, roots: () => [root.root], now: () => new Date() };
  return new KubernetesSigner({ ...options, ...overrides });
}

function requestFrom(of: KubernetesSigner) {
  const order = { request: createRequest(ownKey.privateKey, [uri]), key: ownKey.publicKey, isForClients: true };
  const names = { uris: [uri], dns: [], ips: [] };
  return of.sign({ ...order, names, lifetimeMs: hourMs }, { endsAt: 0, client: 'test' });
}

const countRequests = async (name: string): Promise<number> =>
  (await cluster.admin.list(requests, { fieldSelector: `spec.signerName=${name}` }, neverAborted)).items.length;

it('a certificate is issued if the signer signs it as requested, and its CertificateSigningRequest is deleted', async () => {
  const { name } = signer();
  const response = await requestFrom(client(name));
  expect(response).toMatchObject({ issued: { root: { sha256: root.root.sha256 } } });
  await eventually('nothing is left', async () => (await countRequests(name)) === 0);
});

it.each(['changes', 'approves'])(
  'certificates are still issued if another client %s a new CertificateSigningRequest',
  async (behavior) => {
    const { name } = signer();
    const server = cluster.client();
    const request: typeof server.request = async (order, signal) => {
      const createdObject = await server.request(order, signal);
      if (order.method !== 'POST') return createdObject;
      const target = { resource: requests, name: createdObject.metadata.name } as const;
      if (behavior === 'approves') {
        const condition = { type: 'Approved', status: 'True', reason: 'Policy', message: 'by somebody else' };
        const body = { ...createdObject, status: { conditions: [condition] } };
        await cluster.admin.request({ method: 'PUT', ...target, subresource: 'approval', body }, neverAborted);
      } else {
        const body = { metadata: { annotations: { seen: 'yes' } } };
        await cluster.admin.request({ method: 'PATCH', ...target, body }, neverAborted);
      }
      return createdObject;
    };
    expect(await requestFrom(client(name, { server: { request } }))).toHaveProperty('issued');
  },
);

it('a CertificateSigningRequest that replaces the created one is not approved', async () => {
  const { name, seen } = signer();
  const server = cluster.client();
  let otherRequest: KubernetesObject | undefined;
  const request: typeof server.request = async (order, signal) => {
    const response = await server.request(order, signal);
    if (order.method !== 'POST') return response;
    const { metadata, spec, ...kind } = response;
    const target = { resource: requests, name: metadata.name } as const;
    await cluster.admin.request({ method: 'DELETE', ...target }, neverAborted);
    const other = createRequest(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey, [`${uri}2`]);
    const body = {
      ...{ ...kind, metadata: { name: metadata.name }, status: {} },
      spec: { ...(spec as object), request: Buffer.from(other).toString('base64') },
    };
    otherRequest = await cluster.admin.request({ method: 'POST', resource: requests, body }, neverAborted);
    return response;
  };
  expect(await requestFrom(client(name, { server: { request } }))).toEqual({
    failed: expect.stringMatching(/cannot be approved: it was replaced/),
  });
  expect(otherRequest).toBeDefined();
  expect(seen).toEqual([]);
});

it.each<[string, SignerBehavior | 'nothing', RegExp]>([
  ['never responds', 'nothing', /failed.*there is no certificate after 1 s/],
  ['denies', { condition: 'Denied' }, /refused.*was denied: Policy: not this one/],
  ['fails', { condition: 'Failed' }, /refused.*failed: Policy: not this one/],
  [
    'signs for another key',
    { key: generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey },
    /refused.*has another key/,
  ],
  [
    'signs for another identity',
    { names: { uris: [`${uri}2`], dns: [], ips: [] } },
    /refused.*must have exactly the names/,
  ],
  [
    'signs for more than was requested',
    { names: { uris: [uri], dns: ['shop'], ips: [] } },
    /refused.*must have exactly the names/,
  ],
  ['signs for longer than requested', { lifetimeMs: 2 * hourMs }, /refused.*longer lifetime than the requested 3600 s/],
  ['issues an expired certificate', { lifetimeMs: -1_000 }, /refused.*expires too soon, on/],
])('a signer that %s causes an error with the reason instead of a certificate', async (_, behavior, reason) => {
  const { name } = signer(behavior);
  // An approved request cannot be denied.
  const approvesRequests = behavior === 'nothing' || behavior.condition !== 'Denied';
  const limitMs = behavior === 'nothing' ? 1_000 : 60_000;
  expect(JSON.stringify(await requestFrom(client(name, { approvesRequests, limitMs })))).toMatch(reason);
  await eventually('nothing is left', async () => (await countRequests(name)) === 0);
});

it('a certificate is not issued if its root is not the mesh’s', async () => {
  const { name } = signer({ signingAuthority: foreignAuthority });
  expect(JSON.stringify(await requestFrom(client(name)))).toMatch(/refused.*has no valid chain to a root of the mesh/);
});

it('permissions to create, read and delete requests and to approve those of this signer are sufficient and necessary', async () => {
  const group = { apiGroups: ['certificates.k8s.io'] };
  const { name } = signer();
  const rules: Rule[] = [
    { ...group, resources: ['certificatesigningrequests'], verbs: ['create', 'get', 'delete'] },
    { ...group, resources: ['certificatesigningrequests/approval'], verbs: ['update'] },
    { ...group, resources: ['signers'], resourceNames: [name], verbs: ['approve'] },
  ];
  const server = await cluster.clientWith({ cluster: rules });
  expect(await requestFrom(client(name, { server }))).toHaveProperty('issued');
  const poor = await cluster.clientWith({ cluster: rules.slice(0, 2) });
  expect(JSON.stringify(await requestFrom(client(name, { server: poor })))).toMatch(
    /failed.*cannot be approved: .*forbidden/,
  );
  await eventually('nothing is left', async () => (await countRequests(name)) === 0);
});

it('a certificate request beyond the running and queued ones is rejected with a retry delay', async () => {
  const { name } = signer('nothing');
  const fullClient = client(name, { limitMs: 500, limits: { maxWaiting: 2, maxOfConnection: 100 } });
  const responses = await Promise.all(Array.from({ length: 20 }, () => requestFrom(fullClient)));
  expect(responses.filter((response) => 'tryAgainAfterMs' in response).length).toBe(6);
});

it('a workload gets a certificate of the signer through the control plane, only for its own identity', async () => {
  const { name, seen } = signer();
  const flags = { registries: 'Kubernetes', configDir: '', kubeconfig, namespace: cluster.namespace };
  const plane = new ControlPlane(
    { ...flags, secureGRPCAddr: '127.0.0.1:0' },
    {},
    ({ root: of }) => writeFileSync(join(of, 'mesh'), JSON.stringify({ caCertificates: [{ pem: root.root.pem }] })),
    { SELF_SIGNED_CA_SECRET: 'istio-ca-secret', EXTERNAL_CA: 'ISTIOD_RA_KUBERNETES_API', K8S_SIGNER: name },
  );
  await plane.ready();
  const secrets = resourceOf('Secret');
  const selection = { namespace: cluster.namespace, fieldSelector: 'metadata.name=istio-ca-secret', keepsData: true };
  const [secret] = (await cluster.admin.list(secrets, selection, neverAborted)).items;
  const ca = Buffer.from((secret!.data as Record<string, string>)['root-cert.pem']!, 'base64');
  const caller = new Client(`127.0.0.1:${plane.port('ads.listening')}`, credentials.createSsl(ca), {
    'grpc.ssl_target_name_override': `istiod.${cluster.namespace}.svc`,
  });
  onTestFinished(() => caller.close());
  const account = await cluster.account();
  const bearer = await cluster.token(account, 'istio-ca');
  const name1 = `spiffe://cluster.local/ns/${cluster.namespace}/sa/${account}`;
  const [leaf = '', ...otherCertificates] = await requestCertificateChain(caller, {
    csr: createRequest(ownKey.privateKey, [name1]),
    bearer,
  });
  const roots = readCertificates(otherCertificates.at(-1)!);
  expect(roots.map(({ sha256 }) => sha256)).toEqual([
    root.root.sha256,
    readCertificate(Buffer.from(pemDer(ca))).sha256,
  ]);
  const certificate = readCertificates(leaf)[0]!;
  expect(certificate.alternativeNames?.uris).toEqual([name1]);
  expect(findPath({ certificate, intermediates: [], roots: [root.root], at: new Date() })).toHaveProperty('path');
  for (const uris of [[], [uri], [name1, uri]]) {
    await expect(
      requestCertificateChain(caller, { csr: createRequest(ownKey.privateKey, uris), bearer }),
    ).rejects.toThrow(
      `the certificate request must have the URI ${name1} and no other name [CERTIFICATE_REQUEST_INVALID]`,
    );
  }
  expect(seen.length).toBe(1);
  expect(plane.deviations()).toEqual([]);
});

function pemDer(pem: Buffer): Buffer {
  return Buffer.from(pem.toString().replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');
}
