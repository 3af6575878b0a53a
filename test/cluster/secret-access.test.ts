/** A proxy receives a Secret if the API server confirms that its service account may list Secrets of the namespace. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials, Metadata } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { resourceOf } from '../../src/discovery/kubernetes/api-resource.ts';
import { SecretAccess } from '../../src/discovery/secrets/secret-access.ts';
import { silentLogger } from '../../src/runtime/output/log.ts';
import { typeUrls } from '../ads-client.ts';
import { createAuthority } from '../certs/authority.ts';
import { ControlPlane, stopControlPlanes } from '../harness/control-plane.ts';
import { eventually } from '../harness/eventually.ts';
import type { Rule } from './cluster.ts';
import { givenCluster } from './given-cluster.ts';
import { defineKinds, writeKubeconfig } from './mesh-objects.ts';

const cluster = givenCluster();
const folder = mkdtempSync(join(tmpdir(), 'cp-secrets-'));
const authority = createAuthority();
const neverAborted = new AbortController().signal;
const lists: Rule = { apiGroups: [''], resources: ['secrets'], verbs: ['list'] };

beforeAll(async () => {
  await defineKinds(cluster);
  writeKubeconfig(join(folder, 'config'), cluster);
  const { certificate, privateKey } = authority.issue(['web.test']);
  const data = Object.fromEntries(
    Object.entries({ 'tls.crt': certificate, 'tls.key': privateKey }).map(([key, text]) => [key, btoa(text)]),
  );
  await cluster.create(resourceOf('Secret'), { metadata: { name: 'web' }, type: 'kubernetes.io/tls', data });
});
afterEach(stopControlPlanes);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const accessBy = (server = cluster.client()): SecretAccess => new SecretAccess({ server, log: silentLogger });
const review = (account: string, access = accessBy()) => access.review(`${cluster.namespace}/${account}`, neverAborted);

it('an account has access to Secrets if it can list those of its own namespace', async () => {
  const [plain, reader, narrow] = await Promise.all([
    cluster.account(),
    cluster.account({ namespace: [lists] }),
    cluster.account({
      namespace: [
        { ...lists, verbs: ['get'] },
        { ...lists, resourceNames: ['web'] },
      ],
    }),
  ]);
  expect(await review(reader)).toEqual({ outcome: 'answered', allowed: true });
  expect(await review(plain)).toEqual({ outcome: 'answered', allowed: false });
  expect(await review(narrow)).toEqual({ outcome: 'answered', allowed: false });
  expect(await review('nobody')).toEqual({ outcome: 'answered', allowed: false });
});

it('an access review leaves the permission unknown if it is forbidden or gets no response', async () => {
  const account = await cluster.account({ namespace: [lists] });
  const failedReview = { outcome: 'failed', reason: expect.any(String) };
  expect(await review(account, accessBy(await cluster.clientWith({})))).toEqual(failedReview);
  const closedClient = cluster.client();
  closedClient.close();
  expect(await review(account, accessBy(closedClient))).toEqual(failedReview);
});

function securePlane(): ControlPlane {
  const issuedCertificate = authority.issue(['127.0.0.1']);
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  return new ControlPlane({
    ...{ registries: 'Kubernetes', configDir: '', kubeconfig: join(folder, 'config'), secureGRPCAddr: '127.0.0.1:0' },
    caCertFile: file('ca', authority.certificate),
    tlsCertFile: file('cert', issuedCertificate.certificate),
    tlsKeyFile: file('key', issuedCertificate.privateKey),
  });
}

/**
 * Requests the Secret as a gateway of the account.
 * @returns a function that returns the number of resources in each response so far
 */
async function gateway(plane: ControlPlane, account: string): Promise<() => number[]> {
  const token = await cluster.token(account, 'istio-ca');
  const calls = credentials.createFromMetadataGenerator((_, callback) => {
    const metadata = new Metadata();
    metadata.set('authorization', `Bearer ${token}`);
    callback(null, metadata);
  });
  const channel = credentials.combineChannelCredentials(
    credentials.createSsl(Buffer.from(authority.certificate)),
    calls,
  );
  const stream = plane.client(plane.port('ads.listening'), channel).sotw();
  const resourceCounts: number[] = [];
  stream.onResponse = ({ typeUrl, nonce, versionInfo, resources }) => {
    resourceCounts.push(resources.length);
    stream.send({ typeUrl, responseNonce: nonce, versionInfo, resourceNames: ['kubernetes://web'] });
  };
  const id = `router~192.0.2.1~front.${cluster.namespace}~${cluster.namespace}.svc.cluster.local`;
  const metadata = { NAMESPACE: cluster.namespace, SERVICE_ACCOUNT: account, CLUSTER_ID: 'Kubernetes' };
  stream.send({ node: { id, cluster: 'front', metadata }, typeUrl: typeUrls.SDS, resourceNames: ['kubernetes://web'] });
  return () => resourceCounts;
}

it("a gateway receives a Secret only after the API server has confirmed the permission of the gateway's account", async () => {
  const plane = securePlane();
  await plane.ready();
  const reader = await gateway(plane, await cluster.account({ namespace: [lists] }));
  const account = await cluster.account();
  const other = await gateway(plane, account);
  await eventually('the gateway has it', () => reader().includes(1));
  const reviewed = (allowed: boolean): boolean =>
    plane.records.some(
      (record) =>
        record.kind === 'event' && record.event.type === 'access.reviewed' && record.event.allowed === allowed,
    );
  await eventually('the other was asked about', () => reviewed(false));
  expect(reviewed(true)).toBe(true);
  expect(other()).not.toContain(1);
  expect(plane.deviations()).toEqual([]);
});

it('a tenant with all permissions in its namespace gets a Secret of that namespace that no object refers to', async () => {
  const plane = securePlane();
  await plane.ready();
  const allRights: Rule = { apiGroups: ['*'], resources: ['*'], verbs: ['*'] };
  const tenant = await gateway(plane, await cluster.account({ namespace: [allRights] }));
  await eventually('the tenant has it', () => tenant().includes(1));
  expect(tenant().at(-1)).toBe(1);
});
