/** The authority that replicas share as a Secret: all replicas have one root, in any order of starts and after any change of the Secret. */

import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, credentials } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { generateRoot } from '../../src/discovery/ca/generate-root.ts';
import { resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import type { KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import { createRequest } from '../../src/identity/certificate-request.ts';
import { requestCertificateChain, serverName } from '../harness/certificate-caller.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { freePorts } from '../harness/free-ports.ts';
import { linesOf } from '../harness/logged-line.ts';
import { Program } from '../harness/program.ts';
import { givenCluster } from './given-cluster.ts';
import { writeKubeconfig } from './mesh-objects.ts';

const cluster = givenCluster();
const secrets = resourceOf('Secret');
const neverAborted = new AbortController().signal;
const folder = mkdtempSync(join(tmpdir(), 'cp-authority-secret-'));
const kubeconfig = join(folder, 'config');
const name = 'istio-ca-secret';
const env = { SELF_SIGNED_CA_SECRET: name };
const clients: Client[] = [];
const dayMs = 24 * 3_600_000;

beforeAll(() => writeKubeconfig(kubeconfig, cluster));
beforeEach(async () => {
  for (const secret of [name, 'cacerts']) await cluster.delete(secrets, secret).catch(() => {});
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.close();
  await stopControlPlanes();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function startPlane(): ControlPlane {
  const flags = { registries: 'Kubernetes', configDir: '', kubeconfig, secureGRPCAddr: '127.0.0.1:0' };
  // Control planes of other test files write their roots with the default name in all namespaces.
  const ownRootName = { PILOT_CA_CERT_CONFIGMAP: `root-of-${cluster.namespace}` };
  return new ControlPlane({ ...flags, namespace: cluster.namespace }, {}, () => {}, { ...ownRootName, ...env });
}

async function replica(): Promise<ControlPlane> {
  const plane = startPlane();
  await plane.ready();
  return plane;
}

const secret = (of = name): Promise<KubernetesObject> =>
  cluster.admin.request({ method: 'GET', resource: secrets, namespace: cluster.namespace, name: of }, neverAborted);

async function textOf(key: string, of = name): Promise<string> {
  // A client trims the Secrets that it stores, but not a list result with `keepsData`.
  const selection = { namespace: cluster.namespace, fieldSelector: `metadata.name=${of}`, keepsData: true };
  const [object] = (await cluster.admin.list(secrets, selection, neverAborted)).items;
  return Buffer.from((object?.data as Record<string, string> | undefined)?.[key] ?? '', 'base64').toString();
}

const dataFor = (texts: Record<string, string>) =>
  Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString('base64')]));

/** The state of the authority on a replica's page. */
interface Page {
  readonly stage: string;
  readonly signer?: { readonly id: string };
  readonly roots: readonly { readonly id: string }[];
}

async function page(plane: ControlPlane): Promise<Page> {
  return (await plane.get('/debug/authorityz')).json();
}

/** Warnings of the authority; a busy machine may cause others. */
const troublesOf = (plane: ControlPlane): string[] => plane.troubles().filter((line) => line.includes('\tauthority\t'));

const signerOf = async (plane: ControlPlane): Promise<string | undefined> => (await page(plane)).signer?.id;

/**
 * Requests a certificate with a service account token.
 * @returns PEM: leaf and roots
 */
async function certificateOf(plane: ControlPlane): Promise<string[]> {
  const ca = await textOf('root-cert.pem');
  const options = { ...serverName, 'grpc.ssl_target_name_override': `istiod.${cluster.namespace}.svc` };
  const client = new Client(
    `127.0.0.1:${plane.port('ads.listening')}`,
    credentials.createSsl(Buffer.from(ca)),
    options,
  );
  clients.push(client);
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const bearer = await cluster.token(await cluster.account(), 'istio-ca');
  return requestCertificateChain(client, { csr: createRequest(privateKey, []), bearer });
}

it('two replicas that start simultaneously share one root', async () => {
  const ports = await freePorts(4);
  const programs = [ports.slice(0, 2), ports.slice(2)].map(([http, securePort]) =>
    Program.start('pilot-discovery', {
      args: [
        ...['discovery', '--registries', 'Kubernetes', '--kubeconfig', kubeconfig, '--namespace', cluster.namespace],
        ...['--grpcAddr', '', '--monitoringAddr', ''],
        ...['--httpAddr', `127.0.0.1:${http}`, '--secureGRPCAddr', `127.0.0.1:${securePort}`],
      ],
      env: { ...process.env, ...env },
      cwd: folder,
    }),
  );
  const signers = async (): Promise<(string | undefined)[]> =>
    Promise.all(
      [ports[0], ports[2]].map(async (port) => {
        const response = await fetch(`http://127.0.0.1:${port}/debug/authorityz`);
        return ((await response.json()) as Page).signer?.id;
      }),
    );
  await eventually('both sign', async () => !(await signers()).includes(undefined));
  expect(new Set(await signers()).size).toBe(1);
  expect(JSON.parse((await secret()).metadata.annotations!['chartpilot/rotation']!)).toMatchObject({
    ...{ stage: 'steady', signer: (await signers())[0], other: null },
  });
  expect((await secret()).type).toBe('istio.io/ca-root');
  for (const program of programs) process.kill(program.pid, 'SIGTERM');
  for (const program of programs) expect((await program.exited).code).toBe(0);
});

it('a replica that starts later signs with the existing root, and no log, trace or page contains a key', async () => {
  const one = await replica();
  const other = await replica();
  expect(await signerOf(other)).toBe(await signerOf(one));
  const root = new X509Certificate(await textOf('root-cert.pem'));
  for (const plane of [one, other]) {
    const [leaf = ''] = await certificateOf(plane);
    expect(new X509Certificate(leaf).verify(root.publicKey)).toBe(true);
    const key = (await textOf('ca-key.pem')).split('\n')[1]!;
    const shownTexts = [plane.lines, plane.records, (await plane.get('/debug/authorityz')).text];
    expect(JSON.stringify(shownTexts)).not.toContain(key.slice(0, 40));
    expect(plane.deviations()).toEqual([]);
    expect(troublesOf(plane)).toEqual([]);
  }
});

it('an invalid, empty or foreign Secret is reported while the last valid one stays active, and a deleted Secret is recreated', async () => {
  const plane = await replica();
  const signer = await signerOf(plane);
  const [key, certificate] = [await textOf('ca-key.pem'), await textOf('ca-cert.pem')];
  const expectReported = (expectedText: string) =>
    eventually(expectedText, () =>
      linesOf(plane.lines, 'authority.failed').some((line) => line.includes(expectedText)),
    );
  await cluster.patch(secrets, name, { data: dataFor({ 'ca-key.pem': 'no key' }) });
  await expectReported('ca-key.pem is not valid PEM');
  await cluster.patch(secrets, name, { data: null });
  await expectReported('ca-cert.pem is missing or empty');
  expect(await signerOf(plane)).toBe(signer);
  const foreignRoot = await generateRoot({ trustDomain: 'cluster.local', ttlMs: 3_600_000, rsaBits: 0 }, new Date());
  const foreignKey = foreignRoot.issuer.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
  await cluster.patch(secrets, name, {
    metadata: { annotations: { 'chartpilot/rotation': null } },
    data: dataFor({
      'ca-cert.pem': foreignRoot.root.pem,
      'ca-key.pem': foreignKey,
      'root-cert.pem': foreignRoot.root.pem,
    }),
  });
  await expectReported('another root');
  expect(await signerOf(plane)).toBe(signer);
  expect((await page(plane)).roots.map(({ id }) => id)).toContain(signer);
  await cluster.delete(secrets, name);
  await eventually('it is put back', async () => (await textOf('ca-cert.pem')) === certificate);
  expect(createsSameKey(await textOf('ca-key.pem'), key)).toBe(true);
  expect(plane.deviations()).toEqual([]);
});

it('a replica that starts with an invalid Secret creates no other Secret, and reports the error until the Secret is repaired', async () => {
  const root = await generateRoot({ trustDomain: 'cluster.local', ttlMs: 365 * dayMs, rsaBits: 2_048 }, new Date());
  const certificate = dataFor({ 'ca-cert.pem': root.root.pem });
  await cluster.create(secrets, { metadata: { name }, data: certificate });
  const plane = startPlane();
  const reason = 'ca-key.pem is missing or empty';
  await eventually('it says why it waits', async () => (await plane.get('/ready')).text.includes(reason));
  // The format that Istio writes: without a stage, and with another type of key.
  const key = root.issuer.privateKey.export({ format: 'pem', type: 'pkcs1' }) as string;
  await cluster.patch(secrets, name, { data: { ...certificate, ...dataFor({ 'ca-key.pem': key }) } });
  await plane.ready();
  expect(await signerOf(plane)).toBe(root.id);
  expect(plane.deviations()).toEqual([]);
});

it('a plugged-in authority signs with a new root only after that root has been distributed', async () => {
  const createRoot = (years = 1) =>
    generateRoot({ trustDomain: 'plugged.test', ttlMs: years * 3_600_000, rsaBits: 0 }, new Date());
  const [first, second, third] = [await createRoot(), await createRoot(2), await createRoot(3)];
  const dataOf = (signer: typeof first, ...roots: (typeof first)[]) =>
    dataFor({
      'ca-cert.pem': signer.root.pem,
      'ca-key.pem': signer.issuer.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string,
      'root-cert.pem': roots.map(({ root }) => root.pem).join(''),
    });
  await cluster.create(secrets, { metadata: { name: 'cacerts' }, data: dataOf(first, first) });
  const plane = await replica();
  expect(await signerOf(plane)).toBe(first.id);
  const rootsAre = (...of: (typeof first)[]) =>
    eventually('these roots are given out', async () => {
      const ids = (await page(plane)).roots.map(({ id }) => id).sort();
      return JSON.stringify(ids) === JSON.stringify(of.map(({ id }) => id).sort());
    });
  await cluster.patch(secrets, 'cacerts', { data: dataOf(second, second) });
  await eventually(
    'it is reported',
    () => linesOf(plane.lines, 'authority.failed', { reason: /another root/ }).length > 0,
  );
  expect(await signerOf(plane)).toBe(first.id);
  await cluster.patch(secrets, 'cacerts', { data: dataOf(first, first, second) });
  await rootsAre(first, second);
  await cluster.patch(secrets, 'cacerts', { data: dataOf(second, first, second) });
  await eventually('the second signs', async () => (await signerOf(plane)) === second.id);
  await cluster.patch(secrets, 'cacerts', { data: dataOf(third, first, second, third) });
  await cluster.patch(secrets, 'cacerts', { data: dataOf(second, second) });
  await rootsAre(second);
  // A user created the Secret, so the control plane creates none.
  await expect(secret()).rejects.toThrow('not found');
  expect(plane.deviations()).toEqual([]);
});

/** Moves the start of the current stage into the past. */
async function backdate(ms: number): Promise<void> {
  const text = (await secret()).metadata.annotations!['chartpilot/rotation']!;
  const since = new Date(Date.now() - ms).toISOString();
  const annotations = { 'chartpilot/rotation': JSON.stringify({ ...JSON.parse(text), since }) };
  await cluster.patch(secrets, name, { metadata: { annotations } });
}

const annotated = (order: string): Promise<unknown> =>
  cluster.patch(secrets, name, { metadata: { annotations: { 'chartpilot/order': order } } });

it('one replica writes a root rotation that all replicas follow, also after a restart, and each stage lasts its duration', async () => {
  const planes = [await replica(), await replica()];
  const allPlanes = [...planes];
  const first = await signerOf(planes[0]!);
  const allAre = (stage: string, signer: string | undefined, roots: number) =>
    eventually(`all are ${stage}`, async () => {
      const pages = await Promise.all(planes.map(page));
      return pages.every((one) => one.stage === stage && one.signer?.id === signer && one.roots.length === roots);
    });
  await annotated('rotate');
  await allAre('trusting', first, 2);
  expect((await secret()).metadata.annotations).not.toHaveProperty('chartpilot/order');
  const { roots } = await page(planes[1]!);
  const next = roots.map(({ id }) => id).find((id) => id !== first);
  // A stage lasts its full duration even if the rotation was requested.
  await annotated('rotate');
  await eventually('the order is dealt with', async () => {
    const { annotations } = (await secret()).metadata;
    return annotations?.['chartpilot/order'] === undefined;
  });
  await allAre('trusting', first, 2);
  const previousCertificate = new X509Certificate(await textOf('ca-cert.pem'));
  const oldChain = await certificateOf(planes[1]!);
  expect(new X509Certificate(oldChain[0]!).verify(previousCertificate.publicKey)).toBe(true);
  await planes.shift()!.stop();
  planes.push(await replica());
  allPlanes.push(planes.at(-1)!);
  await backdate(100 * dayMs);
  await allAre('signing', next, 2);
  for (const plane of planes) {
    const [leaf = ''] = await certificateOf(plane);
    expect(new X509Certificate(leaf).verify(new X509Certificate(await textOf('ca-cert.pem')).publicKey)).toBe(true);
  }
  await annotated('revert');
  await allAre('signing', first, 2);
  await annotated('revert');
  await allAre('signing', next, 2);
  await backdate(100 * dayMs);
  await allAre('dropping', next, 1);
  await backdate(100 * dayMs);
  await allAre('steady', next, 1);
  expect(await textOf('other-ca-key.pem')).toBe('');
  const rejectionLines = allPlanes.flatMap(({ lines }) => linesOf(lines, 'authority.orderRejected'));
  // Each replica that reads the order before the leader removes it rejects the order.
  expect(new Set(rejectionLines.map((line) => /order=(\S+)/.exec(line)?.[1]))).toEqual(new Set(['rotate']));
  for (const plane of planes) {
    const problemLines = troublesOf(plane).filter((line) => !rejectionLines.includes(line));
    expect([plane.deviations(), problemLines]).toEqual([[], []]);
  }
});

it('a root that replaces the signing root in the Secret becomes the next root of a rotation', async () => {
  const plane = await replica();
  const signer = await signerOf(plane);
  const foreignRoot = await generateRoot({ trustDomain: 'cluster.local', ttlMs: 365 * dayMs, rsaBits: 0 }, new Date());
  const key = foreignRoot.issuer.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
  await cluster.patch(secrets, name, {
    metadata: { annotations: { 'chartpilot/rotation': null } },
    data: dataFor({ 'ca-cert.pem': foreignRoot.root.pem, 'ca-key.pem': key, 'root-cert.pem': foreignRoot.root.pem }),
  });
  await eventually('both are trusted', async () => (await page(plane)).stage === 'trusting');
  const { signer: now, roots } = await page(plane);
  expect([now?.id, new Set(roots.map(({ id }) => id))]).toEqual([signer, new Set([signer, foreignRoot.id])]);
  // The next root signs, and workloads have certificates of both roots: a third root would disconnect workloads of the first one.
  await backdate(100 * dayMs);
  await eventually('the new one signs', async () => (await page(plane)).stage === 'signing');
  const third = await generateRoot({ trustDomain: 'cluster.local', ttlMs: 365 * dayMs, rsaBits: 0 }, new Date());
  const thirdKey = third.issuer.privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
  await cluster.patch(secrets, name, {
    metadata: { annotations: { 'chartpilot/rotation': null } },
    data: dataFor({ 'ca-cert.pem': third.root.pem, 'ca-key.pem': thirdKey, 'root-cert.pem': third.root.pem }),
  });
  await eventually('what was in force is put back', async () => (await textOf('ca-cert.pem')) === foreignRoot.root.pem);
  const pageAfter = await page(plane);
  expect([pageAfter.stage, pageAfter.signer?.id]).toEqual(['signing', foreignRoot.id]);
  expect(new Set(pageAfter.roots.map(({ id }) => id))).toEqual(new Set([signer, foreignRoot.id]));
});

function createsSameKey(one: string, other: string): boolean {
  return one.replaceAll(/\s/g, '') === other.replaceAll(/\s/g, '');
}
