/** Hosts covered by several TLS servers on one gateway port, with different TLS requirements. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { httpRoute, kubernetesGateway, serviceOf, to } from './harness/gateway-api-objects.ts';
import { joinDocuments, routedHost, secret } from './harness/gateway-objects.ts';
import { gateway } from './harness/objects.ts';
import type { ClientTls } from './harness/requests.ts';

let mesh: FeatureMesh;

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: {
      edge: { type: 'router', labels: { istio: 'edge' } },
      front: { type: 'router', labels: { 'gateway.networking.k8s.io/gateway-name': 'front' } },
    },
    env: { PILOT_SECRETS_ON_PLAINTEXT: 'true' },
  });
});

afterAll(() => mesh?.stop());

const issueSecret = (): string =>
  secret('web', mesh.authority.issue(['*.x.test']), { 'ca.crt': mesh.authority.certificate });

const client = (servername: string, clientOptions: Partial<ClientTls> = {}): ClientTls => ({
  ...{ servername, ca: mesh.authority.certificate },
  ...clientOptions,
});

/** TLS of a client with a certificate of the authority. */
function knownClient(servername: string, name = 'client.test'): ClientTls {
  const { certificate, privateKey } = mesh.authority.issue([name]);
  return client(servername, { cert: certificate, key: privateKey });
}

/** Status of a request for a host over a connection that was opened for `servername`. */
async function statuses(proxy: string, port: number, host: string, tls: ClientTls): Promise<number[]> {
  const requests = [false, true].map(async (http2) => (await mesh.request(proxy, { port, host, tls, http2 })).status);
  return Promise.all(requests);
}

describe('a wildcard server along with a server of one of its hosts with stricter TLS', () => {
  test.each([
    ['mode', { mode: 'MUTUAL' }, knownClient],
    ['minProtocolVersion', { mode: 'SIMPLE', minProtocolVersion: 'TLSV1_3' }, client],
  ])('responds with 421 to requests for that host if the stricter setting is %s', async (_, required, authorized) => {
    const [port, web, vault] = [await mesh.port(), await mesh.http('web'), await mesh.http('vault')];
    const server = (host: string, tls: object) => [
      { port, protocol: 'HTTPS', hosts: [host], tls: { credentialName: 'web', ...tls } },
    ];
    await mesh.apply(
      joinDocuments(
        gateway('wide', { istio: 'edge' }, server('*.x.test', { mode: 'SIMPLE' })),
        gateway('narrow', { istio: 'edge' }, server('a.x.test', required)),
        routedHost('*.x.test', web, ['wide', 'narrow']),
        routedHost('a.x.test', vault, ['wide', 'narrow']),
        issueSecret(),
      ),
    );
    expect(await statuses('edge', port, 'a.x.test', authorized('a.x.test'))).toEqual([200, 200]);
    expect(await statuses('edge', port, 'b.x.test', client('b.x.test'))).toEqual([200, 200]);
    for (const host of ['a.x.test', `A.x.test:${port}`, 'a.x.test.', `a.x.test.:${port}`]) {
      expect(await statuses('edge', port, host, client('b.x.test')), host).toEqual([421, 421]);
    }
    expect(await mesh.page('/debug/push_status')).toContain(
      'requests for a.x.test get 421 over connections of this server',
    );
  });

  test('responds with 421 as a Gateway API listener, too, even to connections without SNI', async () => {
    const [port, web] = [await mesh.port(), await mesh.http('web')];
    const listener = (hostname: object, options: object) => ({
      ...{ port, protocol: 'HTTPS', ...hostname },
      tls: { certificateRefs: [{ name: 'web' }], options },
    });
    await mesh.apply(
      joinDocuments(
        kubernetesGateway([
          listener({}, {}),
          listener({ hostname: 'a.x.test' }, { 'gateway.istio.io/tls-terminate-mode': 'MUTUAL' }),
        ]),
        httpRoute([{ backendRefs: [to('web')] }]),
        serviceOf(web),
        issueSecret(),
      ),
    );
    expect(await statuses('front', port, 'a.x.test', knownClient('a.x.test'))).toEqual([200, 200]);
    expect(await statuses('front', port, 'c.test', client('b.x.test'))).toEqual([200, 200]);
    for (const tls of [client('b.x.test'), { ca: mesh.authority.certificate }]) {
      for (const host of ['a.x.test', 'a.x.test.', 'a.x.test:', `a.x.test.:${port}`])
        expect(await statuses('front', port, host, tls), host).toEqual([421, 421]);
    }
  });
});

describe('two TLS servers of one namespace for the same host', () => {
  const serve = async (olderTls: object, younger: object): Promise<number> => {
    const [port, web] = [await mesh.port(), await mesh.http('web')];
    const server = (hosts: readonly string[], tls: object) => [
      { port, protocol: 'HTTPS', hosts, tls: { mode: 'SIMPLE', credentialName: 'web', ...tls } },
    ];
    await mesh.apply(
      joinDocuments(
        gateway('g1', { istio: 'edge' }, server(['a.x.test'], olderTls)),
        gateway('g2', { istio: 'edge' }, server(['a.x.test', 'b.x.test'], younger)),
        routedHost('*.x.test', web, ['g1', 'g2']),
        issueSecret(),
      ),
    );
    return port;
  };
  const statusOf = (port: number, host: string, tls: ClientTls) =>
    mesh.request('edge', { port, host, tls }).then(
      ({ status }) => status,
      () => 'closed',
    );

  test('serve the host with the higher of their minimum TLS versions', async () => {
    const port = await serve({}, { minProtocolVersion: 'TLSV1_3' });
    expect(await statusOf(port, 'a.x.test', { ...client('a.x.test'), maxVersion: 'TLSv1.2' as const })).toBe('closed');
    expect(await statusOf(port, 'a.x.test', client('a.x.test'))).toBe(200);
  });

  test('serve the host with the combined requirements of both', async () => {
    const port = await serve({ minProtocolVersion: 'TLSV1_3' }, { mode: 'MUTUAL' });
    expect(await statusOf(port, 'a.x.test', { ...knownClient('a.x.test'), maxVersion: 'TLSv1.2' as const })).toBe(
      'closed',
    );
    expect(await statusOf(port, 'a.x.test', client('a.x.test'))).toBe('closed');
    expect(await statusOf(port, 'a.x.test', knownClient('a.x.test'))).toBe(200);
    // The server's other host keeps its requirements. Connections for that host do not serve this one.
    const olderClient = { ...knownClient('b.x.test'), maxVersion: 'TLSv1.2' as const };
    expect(await statusOf(port, 'b.x.test', olderClient)).toBe(200);
    expect(await statusOf(port, 'a.x.test', olderClient)).toBe(404);
  });

  test('close connections to the host if no client can satisfy both sets of requirements', async () => {
    const names = (name: string) => ({ mode: 'MUTUAL', subjectAltNames: [name] });
    const port = await serve(names('one.test'), names('client.test'));
    for (const name of ['one.test', 'client.test'])
      expect(await statusOf(port, 'a.x.test', knownClient('a.x.test', name)), name).toBe('closed');
    expect(await statusOf(port, 'b.x.test', knownClient('b.x.test'))).toBe(200);
  });
});
