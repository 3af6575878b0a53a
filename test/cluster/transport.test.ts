/** The transport with a real API server, for behavior that the unit tests' scripted server lacks. */
import { createPrivateKey, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { describe, expect, it, onTestFinished } from 'vitest';
import { kubeconfigAccess } from '../../src/discovery/kubernetes/access/kubeconfig.ts';
import { type ApiError, failureOfStatus } from '../../src/discovery/kubernetes/api-failure.ts';
import {
  type ApiResource,
  customResourceDefinitions,
  leases,
  resourceOf,
  serviceAccounts,
  tokenReviews,
} from '../../src/discovery/kubernetes/api-resource.ts';
import type {
  ApiServer,
  KubernetesObject,
  WatchEvent,
  WatchOptions,
} from '../../src/discovery/kubernetes/api-server.ts';
import { isInitialEventsEnd } from '../../src/discovery/kubernetes/api-server.ts';
import { defaultSelection } from '../../src/discovery/kubernetes/store/usual-selection.ts';
import { Http2ApiServer } from '../../src/discovery/kubernetes/transport/http2-api-server.ts';
import { type KindName, kinds } from '../../src/model/kinds/index.ts';
import { loadAuthority } from '../certs/authority.ts';
import { failureOf } from '../fixtures/failure-of.ts';
import { eventually } from '../harness/eventually.ts';
import { givenCluster } from './given-cluster.ts';

const cluster = givenCluster();
const neverAborted = new AbortController().signal;
const configMaps = resourceOf('ConfigMap');
const services = resourceOf('Service');
/** This kind has no watch cache, so its watch reads the store. */
const limitRanges: ApiResource = { ...configMaps, plural: 'limitranges', kind: 'LimitRange' };

const namesOf = (objects: readonly KubernetesObject[]): string[] => objects.map(({ metadata }) => metadata.name);

/** A watch of the file's namespace until the test ends. */
function watched(client: ApiServer, resource: ApiResource, options: Partial<WatchOptions>) {
  const stop = new AbortController();
  const events: WatchEvent[] = [];
  const end = client.watch(
    resource,
    { namespace: cluster.namespace, timeoutSeconds: 300, ...options },
    (event) => events.push(event),
    stop.signal,
  );
  end.catch(() => {});
  onTestFinished(() => stop.abort());
  const eventTexts = (): string[] =>
    events.map((event) => (event.type === 'ERROR' ? 'ERROR' : `${event.type} ${event.object.metadata.name}`));
  return { events, end, seen: eventTexts, stop };
}

describe('a list of an API server', () => {
  it('is returned in pages of one snapshot, with its version', async () => {
    const names = Array.from({ length: 5 }, (_, index) => `page-${index}`);
    for (const name of names)
      await cluster.create(configMaps, { metadata: { name, labels: { in: 'pages' } }, data: { mesh: name } });
    const selection = { namespace: cluster.namespace, labelSelector: 'in=pages', limit: 2 };
    const listedObjects: KubernetesObject[] = [];
    const versions = new Set<string>();
    let next: string | undefined;
    let pages = 0;
    do {
      const page = await cluster.admin.list(
        configMaps,
        { ...selection, ...(next !== undefined && { continue: next }) },
        neverAborted,
      );
      listedObjects.push(...page.items);
      versions.add(page.resourceVersion);
      next = page.continue;
      // A name that sorts later does not appear on a later page.
      if (pages++ === 0) await cluster.create(configMaps, { metadata: { name: 'page-9', labels: { in: 'pages' } } });
    } while (next !== undefined);
    expect([pages, namesOf(listedObjects), versions.size]).toEqual([3, names, 1]);
    expect(listedObjects[0]).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap', data: { mesh: 'page-0' } });
    expect(listedObjects[0]!.metadata).not.toHaveProperty('managedFields');
  });

  it('contains the objects that match its selectors, and only metadata if requested', async () => {
    const secrets = resourceOf('Secret');
    await cluster.create(secrets, { metadata: { name: 'release' }, type: 'helm.sh/release.v1', data: { a: 'aGk=' } });
    await cluster.create(secrets, { metadata: { name: 'certificate' }, data: { b: 'aGk=' } });
    const { namespace } = cluster;
    const credentials = await cluster.admin.list(secrets, { ...defaultSelection(secrets), namespace }, neverAborted);
    expect(namesOf(credentials.items)).toEqual(['certificate']);
    const metadata = await cluster.admin.list(secrets, { namespace, metadataOnly: true }, neverAborted);
    expect(namesOf(metadata.items).sort()).toEqual(['certificate', 'release']);
    for (const item of metadata.items) expect(Object.keys(item).sort()).toEqual(['apiVersion', 'kind', 'metadata']);
  });

  it.each(Object.keys(kinds) as KindName[])(
    'is requested for %s in a version that the server has, if it has the kind',
    async (name) => {
      const resource = resourceOf(name);
      const list = cluster.admin.list(resource, { ...defaultSelection(resource), limit: 1 }, neverAborted);
      // Another file may have installed the CRD.
      const isThere = await list.then(
        () => true,
        ({ failure }: ApiError) =>
          failure.kind === 'status' && failure.code === 404 && /istio|gateway/.test(resource.group),
      );
      expect(isThere).toBe(true);
    },
  );

  it('omits failed pods, and keeps the used fields of the others', async () => {
    const pods = resourceOf('Pod');
    const spec = {
      containers: [{ name: 'c', image: 'none', ports: [{ name: 'http', containerPort: 80 }] }],
      nodeName: 'n1',
    };
    for (const name of ['failed', 'runs']) {
      await cluster.create(pods, { metadata: { name, labels: { app: name } }, spec });
      const phase = name === 'runs' ? 'Running' : 'Failed';
      await cluster.patch(pods, name, { status: { phase, podIPs: [{ ip: '10.1.0.5' }], podIP: '10.1.0.5' } }, 'status');
    }
    const page = await cluster.admin.list(
      pods,
      { ...defaultSelection(pods), namespace: cluster.namespace },
      neverAborted,
    );
    expect(page.items).toMatchObject([
      {
        metadata: { name: 'runs', labels: { app: 'runs' } },
        spec: { nodeName: 'n1', containers: [{ ports: [{ name: 'http', containerPort: 80, protocol: 'TCP' }] }] },
        status: { phase: 'Running', podIP: '10.1.0.5' },
      },
    ]);
    expect(JSON.stringify(page.items)).not.toContain('image');
  });

  it('contains a pod of the largest accepted size along with all others', async () => {
    const pods = resourceOf('Pod');
    // The store writes `<` as six bytes.
    const args = ['<'.repeat(1_450_000)];
    const object = { metadata: { name: 'large' }, spec: { containers: [{ name: 'a', image: 'a', args }] } };
    await cluster.create(pods, object);
    const page = await cluster.client().list(pods, { namespace: cluster.namespace }, neverAborted);
    expect(namesOf(page.items)).toContain('large');
    await cluster.delete(pods, 'large');
  });

  it("fails with the cause and a retry delay if the requested version is newer than the server's", async () => {
    const page = await cluster.admin.list(configMaps, { namespace: cluster.namespace }, neverAborted);
    const resourceVersion = (BigInt(page.resourceVersion) + 1_000_000n).toString();
    expect(await failureOf(cluster.admin.list(configMaps, { resourceVersion }, neverAborted))).toMatchObject({
      ...{ kind: 'status', code: 504, causes: ['ResourceVersionTooLarge'], retryAfterMs: 1_000 },
    });
  });
});

describe('a watch of an API server', () => {
  it('begins with a list that ends with a bookmark, and continues with changes', async () => {
    await cluster.create(services, { metadata: { name: 'before' }, spec: { ports: [{ port: 80 }] } });
    const { seen, events } = watched(cluster.admin, services, { sendInitialEvents: true });
    await eventually('the initial events end', () => events.some(isInitialEventsEnd));
    expect(seen()).toEqual(['ADDED before', 'BOOKMARK ']);
    await cluster.patch(services, 'before', { metadata: { labels: { changed: 'yes' } } });
    await cluster.delete(services, 'before');
    await eventually('it is gone', () => events.length === 4);
    expect(seen().slice(2)).toEqual(['MODIFIED before', 'DELETED before']);
    expect(events[2]!.object).toMatchObject({ kind: 'Service', metadata: { labels: { changed: 'yes' } } });
  });

  it('continues from the version of a list, with only metadata', async () => {
    const { resourceVersion } = await cluster.admin.list(configMaps, { namespace: cluster.namespace }, neverAborted);
    const fieldSelector = 'metadata.name=applied';
    const { seen, events } = watched(cluster.admin, configMaps, { resourceVersion, fieldSelector, metadataOnly: true });
    await cluster.apply(configMaps, { metadata: { name: 'applied' }, data: { a: '1' } });
    await cluster.apply(configMaps, { metadata: { name: 'applied' }, data: { a: '2' } });
    await eventually('both are seen', () => events.length === 2);
    expect(seen()).toEqual(['ADDED applied', 'MODIFIED applied']);
    for (const { object } of events) expect(object).not.toHaveProperty('data');
  });

  it('ends without a failure at the timeout of the server', async () => {
    const { end } = watched(cluster.admin, services, { sendInitialEvents: true, timeoutSeconds: 1 });
    expect((await end).events).toBeGreaterThan(0);
  });

  it('receives 410, as an event and as a status, if its version was compacted', async () => {
    const { namespace } = cluster;
    const first = await cluster.create(limitRanges, { metadata: { name: 'old-1' }, spec: { limits: [] } });
    await cluster.create(limitRanges, { metadata: { name: 'old-2' }, spec: { limits: [] } });
    const page = await cluster.admin.list(limitRanges, { namespace, limit: 1 }, neverAborted);
    await cluster.create(limitRanges, { metadata: { name: 'old-3' }, spec: { limits: [] } });
    await cluster.compact();
    const { events, end } = watched(cluster.admin, limitRanges, { resourceVersion: first.metadata.resourceVersion! });
    expect(await end).toEqual({ events: 1, skipped: 0 });
    const [event] = events;
    expect(event?.type === 'ERROR' && failureOfStatus(event.object)).toMatchObject({ code: 410, reason: 'Expired' });
    const nextPage = cluster.admin.list(limitRanges, { namespace, limit: 1, continue: page.continue! }, neverAborted);
    expect(await failureOf(nextPage)).toMatchObject({ kind: 'status', code: 410, reason: 'Expired' });
    // A client that lists again loses nothing.
    const secondList = await cluster.admin.list(limitRanges, { namespace }, neverAborted);
    expect(namesOf(secondList.items)).toEqual(['old-1', 'old-2', 'old-3']);
    const { seen } = watched(cluster.admin, limitRanges, { resourceVersion: secondList.resourceVersion });
    await cluster.delete(limitRanges, 'old-2');
    await eventually('it goes on', () => seen().includes('DELETED old-2'));
  });

  it('shares a connection with many other watches, and each receives its own events', async () => {
    const { resourceVersion } = await cluster.admin.list(configMaps, { namespace: cluster.namespace }, neverAborted);
    const names = Array.from({ length: 20 }, (_, index) => `many-${index}`);
    const all = names.map((name) =>
      watched(cluster.admin, configMaps, { resourceVersion, fieldSelector: `metadata.name=${name}` }),
    );
    await Promise.all(names.map((name) => cluster.create(configMaps, { metadata: { name } })));
    await eventually('each has one', () => all.every(({ events }) => events.length === 1));
    expect(all.map(({ seen }) => seen()[0])).toEqual(names.map((name) => `ADDED ${name}`));
  });
});

describe('an undefined kind of an API server', () => {
  it('returns 404, and is watched once it is defined', async () => {
    const group = `${cluster.namespace}.example.com`;
    const routes: ApiResource = { group, version: 'v1', plural: 'routes', kind: 'Route', namespaced: true };
    const options = { namespace: cluster.namespace };
    expect(await failureOf(cluster.admin.list(routes, options, neverAborted))).toMatchObject({
      kind: 'status',
      code: 404,
    });
    expect(await failureOf(watched(cluster.admin, routes, { resourceVersion: '0' }).end)).toMatchObject({ code: 404 });

    const definitions = watched(cluster.admin, customResourceDefinitions, {
      sendInitialEvents: true,
      metadataOnly: true,
    });
    const openAPIV3Schema = {
      type: 'object',
      properties: { spec: { type: 'object', properties: { host: { type: 'string' } } } },
    };
    const versions = [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }];
    const names = { plural: 'routes', singular: 'route', kind: 'Route', listKind: 'RouteList' };
    await cluster.create(customResourceDefinitions, {
      metadata: { name: `routes.${group}` },
      spec: { group, names, scope: 'Namespaced', versions },
    });
    await eventually('the definition is seen, as metadata', () => definitions.seen().includes(`ADDED routes.${group}`));

    // For a moment after the definition the server still returns 404.
    const { resourceVersion } = await eventually('it is served', () =>
      cluster.admin.list(routes, options, neverAborted),
    );
    const { seen } = watched(cluster.admin, routes, { resourceVersion });
    await cluster.create(routes, { metadata: { name: 'first' }, spec: { host: 'a.example' } });
    await eventually('its object is seen', () => seen().includes('ADDED first'));
    const invalidObject = cluster.create(routes, { metadata: { name: 'bad' }, spec: { host: 5 } });
    expect(await failureOf(invalidObject)).toMatchObject({ kind: 'status', code: 422, reason: 'Invalid' });
  });
});

describe('the identity of an API client', () => {
  it('has only the permissions of the service account', async () => {
    const rule = { apiGroups: [''], resources: ['configmaps'], verbs: ['list', 'watch'] };
    const client = await cluster.clientWith({ namespace: [rule] });
    const { namespace } = cluster;
    expect((await client.list(configMaps, { namespace, limit: 1 }, neverAborted)).items).toHaveLength(1);
    const forbidden = { kind: 'status', code: 403, reason: 'Forbidden' };
    expect(await failureOf(client.list(configMaps, {}, neverAborted))).toMatchObject(forbidden);
    const secrets = watched(client, resourceOf('Secret'), { sendInitialEvents: true });
    expect(await failureOf(secrets.end)).toMatchObject(forbidden);
    const write = { method: 'POST', resource: configMaps, namespace, body: { metadata: { name: 'x' } } } as const;
    expect(await failureOf(client.request(write, neverAborted))).toMatchObject(forbidden);
  });

  it('is unauthenticated with an expired token, a token of a deleted account, or no token', async () => {
    const account = await cluster.account({
      namespace: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list'] }],
    });
    const list = (token: string) =>
      cluster.client(token).list(configMaps, { namespace: cluster.namespace, limit: 1 }, neverAborted);
    const { uid } = (
      await cluster.admin.request(
        { method: 'GET', resource: serviceAccounts, namespace: cluster.namespace, name: account },
        neverAborted,
      )
    ).metadata;
    const now = Math.floor(Date.now() / 1_000);
    const endingAt = (seconds: number): Promise<string> =>
      accountToken({ namespace: cluster.namespace, account, uid: uid!, from: seconds - 600, until: seconds });
    expect((await list(await endingAt(now + 300))).items).toHaveLength(1);
    const unauthorized = { kind: 'status', code: 401, reason: 'Unauthorized' };
    expect(await failureOf(list(await endingAt(now - 60)))).toMatchObject(unauthorized);
    expect(await failureOf(list('nonsense'))).toMatchObject(unauthorized);
    const token = await cluster.token(account);
    await cluster.delete(serviceAccounts, account);
    expect(await failureOf(list(token))).toMatchObject(unauthorized);
  });

  it('is a certificate, or comes from a plugin of the kubeconfig', async () => {
    const { folder, url, ca, adminToken } = cluster.address;
    const issuedCertificate = loadAuthority(ca, readFileSync(join(folder, 'ca.key'), 'utf8')).issue(['somebody']);
    const base64 = (text: string): string => Buffer.from(text).toString('base64');
    const client = (user: object): Http2ApiServer => {
      const config = {
        'current-context': 'a',
        contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
        clusters: [{ name: 'a', cluster: { server: url, 'certificate-authority-data': base64(ca) } }],
        users: [{ name: 'a', user }],
      };
      const pluginClient = new Http2ApiServer(
        kubeconfigAccess(JSON.stringify(config), { path: 'test', isTrusted: true }),
      );
      onTestFinished(() => pluginClient.close());
      return pluginClient;
    };
    const certificateClient = client({
      'client-certificate-data': base64(issuedCertificate.certificate),
      'client-key-data': base64(issuedCertificate.privateKey),
    });
    expect(await failureOf(certificateClient.list(configMaps, {}, neverAborted))).toMatchObject({
      ...{ kind: 'status', code: 403, message: expect.stringContaining('User "somebody"') },
    });
    const apiVersion = 'client.authentication.k8s.io/v1';
    const credentialJson = JSON.stringify({ kind: 'ExecCredential', apiVersion, status: { token: adminToken } });
    const admin = client({ exec: { apiVersion, command: 'sh', args: ['-c', `echo '${credentialJson}'`] } });
    expect((await admin.list(services, { limit: 1 }, neverAborted)).resourceVersion).not.toBe('');
  });

  it('is a token for an audience, which the server reviews', async () => {
    const account = await cluster.account();
    const review = async (token: string): Promise<unknown> => {
      const body = {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenReview',
        spec: { token, audiences: ['istio-ca'] },
      };
      return (await cluster.admin.request({ method: 'POST', resource: tokenReviews, body }, neverAborted)).status;
    };
    expect(await review(await cluster.token(account, 'istio-ca'))).toMatchObject({
      authenticated: true,
      user: { username: `system:serviceaccount:${cluster.namespace}:${account}` },
    });
    expect(await review(await cluster.token(account, 'other'))).not.toHaveProperty('authenticated', true);
  });
});

describe('a write to an API server', () => {
  it('is a conflict and changes nothing if its version is outdated', async () => {
    const lease = await cluster.create(leases, { metadata: { name: 'lock' }, spec: { holderIdentity: 'a' } });
    const put = (object: KubernetesObject, holderIdentity: string): Promise<KubernetesObject> =>
      cluster.admin.request(
        {
          ...{ method: 'PUT', resource: leases, namespace: cluster.namespace, name: 'lock' },
          body: { ...object, spec: { holderIdentity } },
        },
        neverAborted,
      );
    const secondLease = await put(lease, 'b');
    expect(await failureOf(put(lease, 'c'))).toMatchObject({ kind: 'status', code: 409, reason: 'Conflict' });
    expect((await put(secondLease, 'd')).spec).toMatchObject({ holderIdentity: 'd' });
    const secondCreate = cluster.create(leases, { metadata: { name: 'lock' } });
    expect(await failureOf(secondCreate)).toMatchObject({ kind: 'status', code: 409, reason: 'AlreadyExists' });
  });

  it('leaves the rest of the object unchanged if it changes the status', async () => {
    const ingresses = resourceOf('Ingress');
    const backend = { service: { name: 'a', port: { number: 80 } } };
    await cluster.create(ingresses, { metadata: { name: 'way-in' }, spec: { defaultBackend: backend } });
    const status = { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } };
    expect(await cluster.patch(ingresses, 'way-in', { status, spec: null }, 'status')).toMatchObject({
      spec: { defaultBackend: backend },
      status,
    });
  });
});

/** A token that is signed with the key of the API server. */
function accountToken(claims: {
  readonly namespace: string;
  readonly account: string;
  readonly uid: string;
  readonly from: number;
  readonly until: number;
}): Promise<string> {
  const { namespace, account: name, uid, from, until } = claims;
  const issuer = 'https://kubernetes.default.svc';
  return new SignJWT({ 'kubernetes.io': { namespace, serviceaccount: { name, uid } } })
    .setProtectedHeader({ alg: 'ES256' })
    .setIssuer(issuer)
    .setAudience(issuer)
    .setSubject(`system:serviceaccount:${namespace}:${name}`)
    .setJti(randomUUID())
    .setIssuedAt(from)
    .setNotBefore(from)
    .setExpirationTime(until)
    .sign(createPrivateKey(readFileSync(join(cluster.address.folder, 'accounts.key'))));
}
