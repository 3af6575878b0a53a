import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAuthority } from '../certs/authority.ts';
import { freePorts } from '../harness/free-ports.ts';
import { fetchSeen, sendRequest, startBackend, startProxy } from '../networking/traffic.ts';

describe('a gateway with generated configuration', () => {
  const cleanups: (() => void | Promise<void>)[] = [];
  let http = 0;
  let https = 0;
  let authority: ReturnType<typeof createAuthority>;

  beforeAll(async () => {
    const certificates = mkdtempSync(join(tmpdir(), 'chartpilot-traffic-'));
    cleanups.push(() => rmSync(certificates, { recursive: true, force: true }));
    authority = createAuthority();
    const issuedCertificate = authority.issue(['a.test']);
    writeFileSync(join(certificates, 'tls.crt'), issuedCertificate.certificate);
    writeFileSync(join(certificates, 'tls.key'), issuedCertificate.privateKey);
    const [v1, v2] = [await startBackend('v1'), await startBackend('v2')];
    cleanups.push(v1.close, v2.close);
    [http = 0, https = 0] = await freePorts(2);
    const proxy = await startProxy(
      gatewayMesh({ http, https, v1: v1.port, v2: v2.port, certificates }),
      { type: 'router', ip: '127.0.0.1', labels: { istio: 'gateway' } },
      http,
    );
    cleanups.push(proxy.close);
  });

  afterAll(async () => {
    for (const cleanup of cleanups.reverse()) await cleanup();
  });

  const host = { host: 'a.test' };

  it('splits requests by weight', async () => {
    const counts: Record<string, number> = {};
    for (let request = 0; request < 200; request++) {
      const { backend } = await fetchSeen(http, '/', host);
      counts[backend] = (counts[backend] ?? 0) + 1;
    }
    // v1 gets 70 % of the requests; the bounds are six standard deviations away.
    expect(counts.v1).toBeGreaterThan(100);
    expect(counts.v1).toBeLessThan(180);
  });

  it('matches headers, absent headers, and query parameters', async () => {
    expect((await fetchSeen(http, '/', { ...host, 'x-version': 'v2' })).backend).toBe('v2');
    expect((await sendRequest(http, '/guarded', { ...host, 'x-off': 'yes' })).status).toBe(403);
    expect((await fetchSeen(http, '/guarded', host)).backend).toBe('v1');
    expect((await fetchSeen(http, '/guarded', { ...host, 'x-off': 'no' })).backend).toBe('v1');
    expect((await fetchSeen(http, '/?to=v2', host)).backend).toBe('v2');
  });

  it('rewrites path and host, and changes headers of requests and responses', async () => {
    const { url, headers } = await fetchSeen(http, '/old/page', { ...host, 'x-gone': '1' });
    expect(url).toBe('/new/page');
    expect(headers).toMatchObject({ host: 'rewritten.test', 'x-set': 'set' });
    expect(headers).not.toHaveProperty('x-gone');
    expect((await sendRequest(http, '/old/page', host)).headers['x-served']).toBe('yes');
  });

  it('redirects, responds directly, aborts and delays', async () => {
    const redirect = await sendRequest(http, '/moved', host);
    expect(redirect.status).toBe(308);
    expect(redirect.headers.location).toBe('https://b.test/here');
    expect(await sendRequest(http, '/teapot', host)).toMatchObject({ status: 418, body: 'short and stout' });
    expect((await sendRequest(http, '/abort', host)).status).toBe(555);
    const start = performance.now();
    await fetchSeen(http, '/slow', host);
    expect(performance.now() - start).toBeGreaterThanOrEqual(290); // Clocks differ slightly.
  });

  it('responds to a cross-origin preflight request', async () => {
    const origin = { ...host, origin: 'https://site.test', 'access-control-request-method': 'GET' };
    const reply = await new Promise<IncomingMessage>((resolve, reject) => {
      const options = {
        host: '127.0.0.1',
        port: http,
        path: '/cors',
        method: 'OPTIONS',
        headers: origin,
        agent: false,
      };
      httpRequest(options, resolve).on('error', reject).end();
    });
    reply.resume();
    expect(reply.headers).toMatchObject({
      'access-control-allow-origin': 'https://site.test',
      'access-control-max-age': '60',
    });
  });

  it('responds 404 for an unknown host, and redirects a host that requires HTTPS', async () => {
    expect((await sendRequest(http, '/', { host: 'nobody.test' })).status).toBe(404);
    const redirect = await sendRequest(http, '/x', { host: 'secure.test' });
    expect(redirect.status).toBe(301);
    expect(redirect.headers.location).toBe('https://secure.test/x');
  });

  it('terminates TLS with the certificate file of the server', async () => {
    const reply = await new Promise<string>((resolve, reject) => {
      const socket = connect({
        host: '127.0.0.1',
        port: https,
        servername: 'a.test',
        ca: authority.certificate,
        ALPNProtocols: ['http/1.1'],
      });
      let text = '';
      socket.on('secureConnect', () => socket.write('GET /tls HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n'));
      socket.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      socket.on('end', () => resolve(text));
      socket.on('error', reject);
    });
    expect(reply).toMatch(/^HTTP\/1.1 200/);
    expect(reply).toContain('"url":"/tls"');
  });
});

function gatewayMesh(settings: { http: number; https: number; v1: number; v2: number; certificates: string }): string {
  return `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: gateway }
spec:
  selector: { istio: gateway }
  servers:
    - { port: { number: ${settings.http}, name: http, protocol: HTTP }, bind: 127.0.0.1, hosts: [a.test] }
    - port: { number: ${settings.http}, name: http-secure, protocol: HTTP }
      bind: 127.0.0.1
      hosts: [secure.test]
      tls: { httpsRedirect: true }
    - port: { number: ${settings.https}, name: https, protocol: HTTPS }
      bind: 127.0.0.1
      hosts: [a.test]
      tls: { mode: SIMPLE, serverCertificate: ${settings.certificates}/tls.crt, privateKey: ${settings.certificates}/tls.key }
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: backend }
spec:
  hosts: [backend.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP }]
  endpoints:
    - { address: 127.0.0.1, ports: { http: ${settings.v1} }, labels: { version: v1 } }
    - { address: 127.0.0.1, ports: { http: ${settings.v2} }, labels: { version: v2 } }
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: backend }
spec:
  host: backend.test
  subsets: [{ name: v1, labels: { version: v1 } }, { name: v2, labels: { version: v2 } }]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: a }
spec:
  hosts: [a.test]
  gateways: [gateway]
  http:
    - match: [{ headers: { x-version: { exact: v2 } } }, { queryParams: { to: { exact: v2 } } }]
      route: [{ destination: { host: backend.test, subset: v2 } }]
    - match: [{ uri: { exact: /guarded }, withoutHeaders: { x-off: { exact: "yes" } } }]
      route: [{ destination: { host: backend.test, subset: v1 } }]
    - match: [{ uri: { exact: /guarded } }]
      directResponse: { status: 403 }
    - match: [{ uri: { prefix: /old/ } }]
      rewrite: { uri: /new/, authority: rewritten.test }
      headers: { request: { set: { x-set: set }, remove: [x-gone] }, response: { add: { x-served: "yes" } } }
      route: [{ destination: { host: backend.test, subset: v1 } }]
    - match: [{ uri: { exact: /moved } }]
      redirect: { uri: /here, authority: b.test, scheme: https, port: 443, redirectCode: 308 }
    - match: [{ uri: { exact: /teapot } }]
      directResponse: { status: 418, body: { string: short and stout } }
    - match: [{ uri: { exact: /abort } }]
      fault: { abort: { httpStatus: 555, percentage: { value: 100 } } }
      route: [{ destination: { host: backend.test } }]
    - match: [{ uri: { exact: /slow } }]
      fault: { delay: { fixedDelay: 0.3s, percentage: { value: 100 } } }
      route: [{ destination: { host: backend.test } }]
    - match: [{ uri: { exact: /cors } }]
      corsPolicy: { allowOrigins: [{ exact: "https://site.test" }], allowMethods: [GET], maxAge: 60s }
      route: [{ destination: { host: backend.test } }]
    - route:
        - { destination: { host: backend.test, subset: v1 }, weight: 70 }
        - { destination: { host: backend.test, subset: v2 }, weight: 30 }
`;
}

describe('a sidecar with generated configuration and without redirection', () => {
  const cleanups: (() => void | Promise<void>)[] = [];
  let inbound = 0;
  let outbound = 0;
  let tcp = 0;

  beforeAll(async () => {
    const [application, other] = [await startBackend('application'), await startBackend('other')];
    cleanups.push(application.close, other.close);
    [inbound = 0, outbound = 0, tcp = 0] = await freePorts(3);
    const yaml = sidecarMesh({ inbound, outbound, tcp, application: application.port, other: other.port });
    const node = { ip: '127.0.0.1', labels: { app: 'own' }, metadata: { INTERCEPTION_MODE: 'NONE' } };
    const proxy = await startProxy(yaml, node, inbound);
    cleanups.push(proxy.close);
  });

  afterAll(async () => {
    for (const cleanup of cleanups.reverse()) await cleanup();
  });

  it('forwards requests of its ingress listener to the application', async () => {
    expect((await fetchSeen(inbound, '/in', { host: 'whatever' })).backend).toBe('application');
  });

  it('sends requests on its egress listener to the service, and rejects hosts that the listener does not import', async () => {
    expect((await fetchSeen(outbound, '/out', { host: 'other.test' })).backend).toBe('other');
    expect((await sendRequest(outbound, '/out', { host: 'hidden.test' })).status).toBe(502);
  });

  it('forwards TCP', async () => {
    expect((await fetchSeen(tcp, '/tcp')).backend).toBe('other');
  });
});

function sidecarMesh(ports: Record<'inbound' | 'outbound' | 'tcp' | 'application' | 'other', number>): string {
  return `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: other }
spec:
  hosts: [other.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{ number: ${ports.outbound}, name: http, protocol: HTTP }, { number: ${ports.tcp}, name: tcp, protocol: TCP }]
  endpoints: [{ address: 127.0.0.1, ports: { http: ${ports.other}, tcp: ${ports.other} } }]
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: { name: own }
spec:
  workloadSelector: { labels: { app: own } }
  outboundTrafficPolicy: { mode: REGISTRY_ONLY }
  ingress:
    - port: { number: ${ports.inbound}, name: http, protocol: HTTP }
      bind: 127.0.0.1
      captureMode: NONE
      defaultEndpoint: 127.0.0.1:${ports.application}
  egress:
    - port: { number: ${ports.outbound}, name: http, protocol: HTTP }
      bind: 127.0.0.1
      captureMode: NONE
      hosts: ["*/other.test"]
    - port: { number: ${ports.tcp}, name: tcp, protocol: TCP }
      bind: 127.0.0.1
      captureMode: NONE
      hosts: ["*/other.test"]
`;
}
