/** Tests webhooks over HTTPS with real sockets. */
import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { Agent, request } from 'node:https';
import { connect, type TlsOptions } from 'node:tls';
import fc from 'fast-check';
import * as E from 'fp-ts/lib/Either.js';
import { expect, onTestFinished, test } from 'vitest';
import { createAuthority } from '../../../test/certs/authority.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import type { SidecarInjector } from '../../injection/injector.ts';
import { defaultInjectionConfig, defaultInjectionValues } from '../../injection/settings.ts';
import { defaultMeshConfig } from '../../model/mesh/mesh-config.ts';
import { defaultProxyConfig } from '../../model/mesh/proxy-config.ts';
import { silentLogger } from '../../runtime/output/log.ts';
import { ConfigReviews } from './config-reviews.ts';
import { InjectionReviews } from './injection-reviews.ts';
import { WebhookServer, WebhookServerCounts, type WebhookServerLimits } from './webhook-server.ts';

const authority = createAuthority();
const issueTlsOptions = (): TlsOptions => {
  const { certificate, privateKey } = authority.issue(['127.0.0.1']);
  return { cert: certificate, key: privateKey, ca: authority.certificate, requestCert: true, minVersion: 'TLSv1.2' };
};
const values = { ...defaultInjectionValues, hub: 'example.com', tag: '1' };
const injector: SidecarInjector = {
  settings: { config: defaultInjectionConfig, values, revision: '' },
  mesh: defaultMeshConfig,
  proxyConfigFor: () => defaultProxyConfig,
};

interface Response {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface Started {
  readonly port: number;
  readonly counts: WebhookServerCounts;
  readonly reviews: InjectionReviews;
  readonly faults: unknown[];
  readonly changeTls: (options: TlsOptions) => void;
  post(path: string, body: string | Buffer, headers?: Record<string, string>, method?: string): Promise<Response>;
}

async function start(
  limits: Partial<WebhookServerLimits> = {},
  of: () => E.Either<string, SidecarInjector> = () => E.right(injector),
): Promise<Started> {
  const counts = new WebhookServerCounts();
  const reviews = new InjectionReviews({ injector: of, log: silentLogger, now: () => 0 });
  const faults: unknown[] = [];
  let changeTls: (options: TlsOptions) => void = () => {};
  const server = new WebhookServer({
    ...{ address: { host: '127.0.0.1', port: 0 }, counts, limits },
    followTls: (listener) => {
      changeTls = listener;
      listener(issueTlsOptions());
      return () => {};
    },
    webhooks: {
      inject: (body, environment) => reviews.review(body, environment),
      validate: (body) => new ConfigReviews({ log: silentLogger, now: () => 0 }).review(body),
    },
    onFailed: (error) => faults.push(error),
    fault: (error) => faults.push(error),
  });
  onTestFinished(() => server.close());
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const port = Number((await server.open()).split(':').at(-1));
  const post: Started['post'] = async (
    path,
    body,
    headers = { 'content-type': 'application/json' },
    method = 'POST',
  ) => {
    const clientRequest = request({ host: '127.0.0.1', port, path, method, headers, ca: authority.certificate, agent });
    clientRequest.end(body);
    const [response] = await once(clientRequest, 'response');
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk as Buffer);
    return { status: response.statusCode, headers: response.headers, text: Buffer.concat(chunks).toString() };
  };
  return { port, counts, reviews, faults, changeTls: (options) => changeTls(options), post };
}

const review = (object: unknown) => ({
  ...{ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' },
  request: { uid: 'u1', namespace: 'shop', object },
});
const pod = { metadata: { generateName: 'web-' }, spec: { containers: [{ name: 'app', image: 'app' }] } };

const responseIn = ({ text }: Response) =>
  (JSON.parse(text) as { response: { uid: string; allowed: boolean; patch?: string; status?: { message: string } } })
    .response;
const patchIn = (response: Response): string => Buffer.from(responseIn(response).patch ?? '', 'base64').toString();

test('a pod review returns a patch that adds the sidecar, with environment variables from the path', async () => {
  const { post, reviews } = await start();
  const response = await post('/inject/cluster/west/net/n1', JSON.stringify(review(pod)));
  expect(response).toMatchObject({ status: 200, headers: { 'content-type': 'application/json' } });
  expect(responseIn(response)).toMatchObject({ uid: 'u1', allowed: true });
  expect(patchIn(response)).toContain('"ISTIO_META_CLUSTER_ID","value":"west"');
  expect(patchIn(response)).toContain('"ISTIO_META_NETWORK","value":"n1"');
  expect([...reviews.counts]).toEqual([['injected', 1]]);
});

test('an Istio object is reviewed on /validate', async () => {
  const { post } = await start();
  const object = {
    apiVersion: 'networking.istio.io/v1',
    kind: 'Gateway',
    metadata: { name: 'g' },
    spec: { servers: 1 },
  };
  const kind = { group: 'networking.istio.io', version: 'v1', kind: 'Gateway' };
  const body = { ...review(object), request: { uid: 'u2', operation: 'CREATE', namespace: 'shop', kind, object } };
  const response = responseIn(await post('/validate', JSON.stringify(body)));
  expect(response).toMatchObject({ uid: 'u2', allowed: false });
  expect(response.status?.message).toContain('Gateway shop/g: spec.servers');
});

test('control characters reach the API server unchanged', async () => {
  const { post } = await start();
  const command = ['sh', '-c', 'printf "\u001b[31m\u0085"'];
  const controlCharPod = { ...pod, spec: { containers: [{ name: 'app', image: 'app', command, args: command }] } };
  const rejectedPod = {
    ...controlCharPod,
    metadata: { name: 'p', annotations: { 'sidecar.istio.io/proxyCPU': 'a\u0007b' } },
  };
  expect(responseIn(await post('/inject', JSON.stringify(review(controlCharPod)))).allowed).toBe(true);
  expect(responseIn(await post('/inject', JSON.stringify(review(rejectedPod)))).allowed).toBe(false);
});

test.each<[string, number, string, string, Record<string, string>, string?]>([
  ['another content type', 415, '/inject', '{}', { 'content-type': 'application/json; charset=utf-8' }],
  ['no content type', 415, '/inject', '{}', {}],
  ['an empty body', 400, '/inject', '', { 'content-type': 'application/json' }],
  ['another method', 405, '/inject', '{}', { 'content-type': 'application/json' }, 'PUT'],
  ['another path', 404, '/other', '{}', { 'content-type': 'application/json' }],
  ['an invalid variable name in the path', 404, '/inject/a=b/c', '{}', { 'content-type': 'application/json' }],
  [
    'a content length above the limit',
    413,
    '/inject',
    '{}',
    { 'content-type': 'application/json', 'content-length': '4000000' },
  ],
])('a request with %s is rejected with status %i', async (_, status, path, body, headers, method) => {
  const { post, counts, reviews } = await start();
  expect((await post(path, body, headers, method)).status).toBe(status);
  expect([...counts.refused]).toEqual([[status, 1]]);
  expect(reviews.counts.size).toBe(0);
});

test('a body without a length is read up to the size limit', async () => {
  const { post } = await start({ maxBodyBytes: 1_000 });
  const chunked = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
  expect((await post('/inject', 'x'.repeat(1_001), chunked)).status).toBe(413);
  expect((await post('/inject', 'x'.repeat(1_000), chunked)).status).toBe(200);
});

test('bodies from one address share a limit, and release their bytes when done', async () => {
  const { port, post, counts } = await start({ maxBytesPerAddress: 1_000 });
  const slowSocket = connect({ host: '127.0.0.1', port, ca: authority.certificate });
  onTestFinished(() => void slowSocket.destroy());
  slowSocket.write(
    'POST /inject HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 2000\r\n\r\n',
  );
  slowSocket.write('x'.repeat(900));
  await eventually('the other body is limited', async () => (await post('/inject', 'x'.repeat(200))).status === 503);
  expect(counts.refused.get(503)).toBe(1);
  slowSocket.destroy();
  await eventually('it is released', async () => (await post('/inject', 'x'.repeat(200))).status === 200);
});

test('a body that is not JSON, nested too deeply or not a review is rejected with an empty uid', async () => {
  const { post, faults } = await start();
  const deep = `${'['.repeat(500_000)}${']'.repeat(500_000)}`;
  const nestedReview = JSON.stringify(review({ ...pod, x: JSON.parse(`${'['.repeat(200)}${']'.repeat(200)}`) }));
  for (const body of ['{', 'null', '[]', deep, nestedReview, JSON.stringify({ ...review(pod), kind: 'Pod' })]) {
    const response = await post('/inject', body);
    expect(response.status).toBe(200);
    expect(responseIn(response)).toMatchObject({ uid: '', allowed: false });
  }
  expect(faults).toEqual([]);
});

test('a review is returned for every body', async () => {
  const { post, faults } = await start();
  const json = fc.jsonValue({ maxDepth: 4 });
  const fields = fc.record(
    {
      metadata: fc.oneof(json, fc.record({ name: json, annotations: json, labels: json }, { requiredKeys: [] })),
      spec: fc.oneof(
        json,
        fc.record({ containers: fc.oneof(json, fc.array(json)), volumes: json }, { requiredKeys: [] }),
      ),
    },
    { requiredKeys: [] },
  );
  const bodies = fc.oneof(
    fc.string({ minLength: 1 }),
    json.map((value) => JSON.stringify(value)),
    fields.map((object) => JSON.stringify(review(object))),
  );
  await fc.assert(
    fc.asyncProperty(bodies, async (body) => {
      const response = await post('/inject', body);
      expect(response.status).toBe(200);
      expect(typeof responseIn(response).allowed).toBe('boolean');
    }),
    { numRuns: 100 },
  );
  expect(faults).toEqual([]);
});

test('a review is rejected with the reason if there are no settings, and /ready responds', async () => {
  const { post, reviews } = await start({}, () =>
    E.left('ConfigMap istio-system/istio-sidecar-injector does not exist'),
  );
  const response = responseIn(await post('/inject', JSON.stringify(review(pod))));
  expect(response).toMatchObject({ uid: 'u1', allowed: false, status: { code: 503 } });
  expect(response.status?.message).toContain('istio-system/istio-sidecar-injector');
  expect([...reviews.counts]).toEqual([['unavailable', 1]]);
  expect((await post('/ready', '', {}, 'GET')).status).toBe(200);
});

test('a renewed certificate is presented to the next connection', async () => {
  const { port, changeTls } = await start();
  const serial = async (): Promise<string> => {
    const socket = connect({ host: '127.0.0.1', port, ca: authority.certificate });
    await once(socket, 'secureConnect');
    const { serialNumber } = socket.getPeerCertificate();
    socket.destroy();
    return serialNumber;
  };
  const connectionsBefore = await serial();
  changeTls(issueTlsOptions());
  expect(await serial()).not.toBe(connectionsBefore);
});

test('a TLS 1.1 client is rejected', async () => {
  const { port } = await start();
  const socket = connect({
    host: '127.0.0.1',
    port,
    ca: authority.certificate,
    minVersion: 'TLSv1',
    maxVersion: 'TLSv1.1',
  });
  const [error] = (await once(socket, 'error')) as [Error];
  expect(String(error)).toMatch(/protocol/i);
});

test('a client that does not complete its handshake or request is disconnected', async () => {
  const { port } = await start({ headersMs: 200, requestMs: 300, checkMs: 50 });
  const { connect: connectTcp } = await import('node:net');
  const silentSocket = connectTcp({ host: '127.0.0.1', port });
  const slowSocket = connect({ host: '127.0.0.1', port, ca: authority.certificate });
  for (const socket of [silentSocket, slowSocket]) socket.on('error', () => {}).resume();
  slowSocket.write('POST /inject HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\r\n{');
  await Promise.all([silentSocket, slowSocket].map((socket) => once(socket, 'close')));
});
