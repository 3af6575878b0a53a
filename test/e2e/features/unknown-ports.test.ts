/** How the outbound traffic policy handles redirected connections to ports that no service has. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePorts } from '../../harness/free-ports.ts';
import type { HttpBackend, TcpBackend } from './harness/backends.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { object, serviceEntry } from './harness/objects.ts';

let mesh: FeatureMesh;
let proxyListenPort: number;

beforeAll(async () => {
  const ports = await freePorts(2);
  [proxyListenPort] = ports as [number, number];
  mesh = await FeatureMesh.start({
    proxies: { web: { labels: { app: 'web' }, metadata: { INTERCEPTION_MODE: 'REDIRECT' } } },
    meshConfig: { proxyListenPort, proxyInboundListenPort: ports[1], protocolDetectionTimeout: '500ms' },
    // Nothing is redirected: a client sends its destination, which only this test's listener reads.
    explains: false,
  });
});

afterAll(() => mesh?.stop());

/** The listener of redirected connections reads the destination from a PROXY protocol header instead of the kernel. */
const destinationHeader = object('networking.istio.io/v1alpha3', 'EnvoyFilter', 'shop', 'told', {
  configPatches: [
    {
      applyTo: 'LISTENER_FILTER',
      match: { context: 'SIDECAR_OUTBOUND', listener: { name: 'virtualOutbound' } },
      patch: {
        operation: 'INSERT_FIRST',
        value: {
          name: 'envoy.filters.listener.proxy_protocol',
          typed_config: {
            '@type': 'type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol',
          },
        },
      },
    },
  ],
});

const policy = (mode: string): string =>
  object('networking.istio.io/v1', 'Sidecar', 'shop', 'policy', { outboundTrafficPolicy: { mode } });

describe('a sidecar with ALLOW_ANY_DYNAMIC_DNS', () => {
  let http: HttpBackend;
  let tcp: TcpBackend;
  let knownBackend: HttpBackend;
  let knownPort: number;

  beforeAll(async () => {
    [http, tcp, knownBackend] = [await mesh.http('http'), await mesh.tcp('tcp'), await mesh.http('known')];
    knownPort = await mesh.port();
    const entry = serviceEntry('known.shop.test', { port: knownPort, backends: [knownBackend] });
    await mesh.apply([destinationHeader, policy('ALLOW_ANY_DYNAMIC_DNS'), entry].join('\n---\n'));
  });

  /** Connects to an address and port, sends a text, and returns the response. */
  const receive = async (port: number, send: string, address = '127.0.0.1') => {
    const header = `PROXY TCP4 127.0.0.1 ${address} 1234 ${port}\r\n`;
    return (await mesh.connect('web', { port: proxyListenPort, send: `${header}${send}`, until: /\r\n\r\n|\n$/ })).text;
  };
  const get = (host: string): string => `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

  test('sends an HTTP request to the address that DNS returns for its host, regardless of the original destination', async () => {
    expect(await receive(9, get(`localhost:${http.port}`), '192.0.2.1')).toMatch(/^HTTP\/1.1 200 OK.*x-backend: http/s);
    expect(await mesh.envoy('web').stat('cluster.AllowAnyDynamicDNSCluster.upstream_rq_total')).toBe(1);
  });

  test('sends other bytes to their original destination', async () => {
    expect(await receive(tcp.port, 'bytes\n', tcp.address)).toMatch(/^tcp\n/);
  });

  test("forwards the server's bytes to a client that waits for the server to send first", async () => {
    expect(await receive(tcp.port, '', tcp.address)).toBe('tcp\n');
  });

  test('routes requests to service ports by the services', async () => {
    expect(await receive(knownPort, get('known.shop.test'), '192.0.2.1')).toMatch(
      /^HTTP\/1.1 200 OK.*x-backend: known/s,
    );
  });
});

test('an HTTP request is sent to its original destination with ALLOW_ANY', async () => {
  const http = await mesh.http('there');
  await mesh.apply([destinationHeader, policy('ALLOW_ANY')].join('\n---\n'));
  const send = `PROXY TCP4 127.0.0.1 ${http.address} 1234 ${http.port}\r\nGET / HTTP/1.1\r\nHost: nowhere.invalid\r\nConnection: close\r\n\r\n`;
  const { text } = await mesh.connect('web', { port: proxyListenPort, send, until: /\r\n\r\n/ });
  expect(text).toMatch(/^HTTP\/1.1 200 OK.*x-backend: there/s);
});
