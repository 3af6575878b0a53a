/** DNS certificates of the mesh configuration: Secrets that the leader creates, renews and recreates. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import { readCertificates } from '../../src/identity/certificate.ts';
import { findPath } from '../../src/identity/certificate-path.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import { givenCluster } from './given-cluster.ts';
import { writeKubeconfig } from './mesh-objects.ts';

const cluster = givenCluster();
const secrets = resourceOf('Secret');
const neverAborted = new AbortController().signal;
const folder = mkdtempSync(join(tmpdir(), 'cp-dns-certificates-'));
const kubeconfig = join(folder, 'config');

beforeAll(() => writeKubeconfig(kubeconfig, cluster));
afterEach(stopControlPlanes);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface ExpectedCertificate {
  readonly secretName: string;
  readonly dnsNames: readonly string[];
}

const meshFile = (root: string, certificates: readonly ExpectedCertificate[]): void =>
  writeFileSync(join(root, 'mesh'), JSON.stringify({ certificates }));

async function startPlane(...certificates: ExpectedCertificate[]): Promise<ControlPlane> {
  const flags = { registries: 'Kubernetes', configDir: '', kubeconfig, namespace: cluster.namespace };
  const plane = new ControlPlane(
    { ...flags, secureGRPCAddr: '127.0.0.1:0' },
    {},
    ({ root }) => meshFile(root, certificates),
    { SELF_SIGNED_CA_SECRET: 'istio-ca-secret' },
  );
  await plane.ready();
  return plane;
}

async function secretOf(name: string): Promise<{ type?: unknown; texts: Record<string, string> } | undefined> {
  const selection = { namespace: cluster.namespace, fieldSelector: `metadata.name=${name}`, keepsData: true };
  const [object] = (await cluster.admin.list(secrets, selection, neverAborted)).items;
  if (object === undefined) return undefined;
  const data = Object.entries((object.data ?? {}) as Record<string, string>);
  return {
    type: object.type,
    texts: Object.fromEntries(data.map(([key, text]) => [key, Buffer.from(text, 'base64').toString()])),
  };
}

const namesIn = async (name: string): Promise<readonly string[] | undefined> => {
  const chain = (await secretOf(name))?.texts['cert-chain.pem'];
  return chain === undefined ? undefined : readCertificates(chain)[0]!.alternativeNames?.dns;
};

it('each DNS certificate has a Secret with key, chain and names, and is issued again if it is missing, invalid or renamed', async () => {
  const web = { secretName: 'dns.web', dnsNames: ['web.shop.svc', '*.web.shop.svc'] };
  const plane = await startPlane(web);
  await eventually('it is there', async () => (await secretOf('dns.web')) !== undefined);
  const issuedSecret = (await secretOf('dns.web'))!;
  expect(issuedSecret.type).toBe('istio.io/dns-key-and-cert');
  expect(Object.keys(issuedSecret.texts).sort()).toEqual(['cert-chain.pem', 'key.pem', 'root-cert.pem']);
  const [certificate, ...intermediates] = readCertificates(issuedSecret.texts['cert-chain.pem']!);
  const roots = readCertificates(issuedSecret.texts['root-cert.pem']!);
  expect(certificate!.alternativeNames?.dns).toEqual(web.dnsNames);
  expect(findPath({ certificate: certificate!, intermediates, roots, at: new Date() })).toHaveProperty('path');
  expect(roots[0]!.pem).toBe((await secretOf('istio-ca-secret'))!.texts['root-cert.pem']);
  await cluster.delete(secrets, 'dns.web');
  await eventually('it is there again', async () => (await secretOf('dns.web')) !== undefined);
  await cluster.patch(secrets, 'dns.web', { data: { 'key.pem': Buffer.from('none').toString('base64') } });
  await eventually('it has a key', async () => (await secretOf('dns.web'))!.texts['key.pem']!.includes('PRIVATE KEY'));
  meshFile(plane.root, [{ ...web, dnsNames: ['other.shop.svc'] }]);
  await eventually('it has other names', async () => (await namesIn('dns.web'))?.join() === 'other.shop.svc');
  expect(plane.deviations()).toEqual([]);
});

it('a foreign Secret with the name of a DNS certificate stays unchanged and is reported, while the others are created', async () => {
  const password = Buffer.from('mine').toString('base64');
  await cluster.create(secrets, { metadata: { name: 'dns.taken' }, type: 'Opaque', data: { password } });
  const plane = await startPlane(
    { secretName: 'dns.taken', dnsNames: ['taken.shop.svc'] },
    { secretName: 'dns.free', dnsNames: ['free.shop.svc'] },
  );
  await eventually('the other is there', async () => (await namesIn('dns.free'))?.join() === 'free.shop.svc');
  const isConflictReport = (line: string): boolean => /dns\.taken.*already exists/.test(line);
  await eventually('it is reported', () => plane.lines.some(isConflictReport));
  expect(await secretOf('dns.taken')).toEqual({ type: 'Opaque', texts: { password: 'mine' } });
});
