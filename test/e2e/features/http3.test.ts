/** HTTP/3 at a gateway (PILOT_ENABLE_QUIC_LISTENERS). A second Envoy is the client, with HTTP/3 only or with `alt-svc` like a browser. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { envoyBinary } from '../../fixtures/real-envoy.ts';
import { eventually } from '../../harness/eventually.ts';
import { Program } from '../../harness/program.ts';
import { FeatureMesh } from './harness/feature-mesh.ts';
import { frontAddress, joinDocuments, routedHost, secret } from './harness/gateway-objects.ts';
import { gateway } from './harness/objects.ts';
import { sendRequest } from './harness/requests.ts';

let mesh: FeatureMesh;

beforeAll(async () => {
  mesh = await FeatureMesh.start({
    proxies: { front: { type: 'router', labels: { istio: 'ingressgateway' }, ip: frontAddress } },
    env: { PILOT_SECRETS_ON_PLAINTEXT: 'true', PILOT_ENABLE_QUIC_LISTENERS: 'true' },
  });
});

afterAll(() => mesh?.stop());

/** The gateway's Service: one port number over TCP and UDP. */
const service = (port: number): string => `
apiVersion: v1
kind: Service
metadata: { name: front, namespace: shop }
spec: { clusterIP: 10.99.0.100, ports: [{ name: https, port: ${port} }, { name: quic, port: ${port}, protocol: UDP }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: front-1, namespace: shop, labels: { kubernetes.io/service-name: front } }
addressType: IPv4
ports: [{ name: https, port: ${port} }, { name: quic, port: ${port}, protocol: UDP }]
endpoints: [{ addresses: [${frontAddress}] }]`;

type Client = 'http3' | 'auto';

/** An Envoy that forwards each request to the gateway, as `host` over TLS. */
class Http3Client {
  readonly program: Program;
  readonly port: number;
  readonly #admin: number;

  private constructor(program: Program, port: number, admin: number) {
    this.program = program;
    this.port = port;
    this.#admin = admin;
  }

  static async start(kind: Client, host: string, gatewayPort: number): Promise<Http3Client> {
    const { port, admin } = await mesh.ports('port', 'admin');
    const file = join(mesh.root, `client-${port}.json`);
    writeFileSync(file, JSON.stringify(bootstrap(kind, host, gatewayPort, port, admin)));
    const program = Program.run(`http3 client ${kind}`, envoyBinary(), {
      args: ['-c', file, '--use-dynamic-base-id', '--concurrency', '1', '-l', 'warning'],
      ...{ env: process.env, cwd: mesh.root },
    });
    const client = new Http3Client(program, port, admin);
    await eventually('the client is ready', async () => (await client.#page('/ready')).includes('LIVE'), {
      hopeless: () => program.hopeless(),
    });
    return client;
  }

  async #page(path: string): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${this.#admin}${path}`).catch(() => undefined);
    return (await response?.text()) ?? '';
  }

  /** Connections of the cluster by HTTP version. */
  async connections(): Promise<{ readonly http2: number; readonly http3: number }> {
    const text = await this.#page('/stats?filter=^cluster.gateway.upstream_cx_http');
    const of = (version: number): number =>
      Number(new RegExp(`upstream_cx_http${version}_total: (\\d+)`).exec(text)?.[1]);
    return { http2: of(2), http3: of(3) };
  }

  async request(host: string) {
    return sendRequest({ port: this.port, host });
  }

  stop(): Promise<unknown> {
    return this.program.stop({ signal: 'SIGKILL' });
  }
}

function bootstrap(kind: Client, host: string, gatewayPort: number, port: number, admin: number): object {
  const address = (of: number) => ({ socket_address: { address: '127.0.0.1', port_value: of } });
  const typed = (type: string, value: object) => ({
    '@type': `type.googleapis.com/envoy.extensions.${type}`,
    ...value,
  });
  const tls = {
    sni: host,
    common_tls_context: { validation_context: { trusted_ca: { inline_string: mesh.authority.certificate } } },
  };
  const http = {
    http3: { explicit_http_config: { http3_protocol_options: {} } },
    auto: {
      auto_config: {
        http2_protocol_options: {},
        http3_protocol_options: {},
        alternate_protocols_cache_options: { name: 'alternatives' },
      },
    },
  }[kind];
  const manager = {
    stat_prefix: 'client',
    codec_type: 'AUTO',
    route_config: {
      virtual_hosts: [
        { name: 'all', domains: ['*'], routes: [{ match: { prefix: '/' }, route: { cluster: 'gateway' } }] },
      ],
    },
    http_filters: [
      ...(kind === 'auto'
        ? [
            {
              name: 'envoy.filters.http.alternate_protocols_cache',
              typed_config: typed('filters.http.alternate_protocols_cache.v3.FilterConfig', {}),
            },
          ]
        : []),
      { name: 'envoy.filters.http.router', typed_config: typed('filters.http.router.v3.Router', {}) },
    ],
  };
  return {
    admin: { address: address(admin) },
    static_resources: {
      listeners: [
        {
          name: 'client',
          address: address(port),
          filter_chains: [
            {
              filters: [
                {
                  name: 'envoy.filters.network.http_connection_manager',
                  typed_config: typed('filters.network.http_connection_manager.v3.HttpConnectionManager', manager),
                },
              ],
            },
          ],
        },
      ],
      clusters: [
        {
          name: 'gateway',
          type: 'STATIC',
          load_assignment: {
            cluster_name: 'gateway',
            endpoints: [{ lb_endpoints: [{ endpoint: { address: address(gatewayPort), hostname: host } }] }],
          },
          typed_extension_protocol_options: {
            'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': typed(
              'upstreams.http.v3.HttpProtocolOptions',
              http,
            ),
          },
          transport_socket: {
            name: 'envoy.transport_sockets.quic',
            typed_config: typed('transport_sockets.quic.v3.QuicUpstreamTransport', { upstream_tls_context: tls }),
          },
        },
      ],
    },
  };
}

test('a gateway serves HTTP/3 to clients that require it and to clients that read alt-svc', async () => {
  const [port, web] = [await mesh.port(), await mesh.http('web')];
  await mesh.apply(
    joinDocuments(
      service(port),
      gateway('door', { istio: 'ingressgateway' }, [
        { port, protocol: 'HTTPS', hosts: ['*.test'], tls: { mode: 'SIMPLE', credentialName: 'web' } },
      ]),
      secret('web', mesh.authority.issue(['web.test'])),
      routedHost('web.test', web, ['door']),
    ),
  );
  const knowing = await Http3Client.start('http3', 'web.test', port);
  const reply = await knowing.request('web.test');
  expect(reply).toMatchObject({ status: 200, headers: { 'x-backend': 'web', 'alt-svc': `h3=":${port}"; ma=86400` } });
  expect(await knowing.connections()).toEqual({ http2: 0, http3: 1 });
  await knowing.stop();

  const http3Client = await Http3Client.start('auto', 'web.test', port);
  expect((await http3Client.request('web.test')).status).toBe(200);
  await eventually('a request goes over HTTP/3', async () => {
    expect((await http3Client.request('web.test')).status).toBe(200);
    return (await http3Client.connections()).http3 > 0;
  });
  expect((await http3Client.connections()).http2).toBe(1);
  await http3Client.stop();
});

test('a host whose server requires client certificates is not served over QUIC, even by a server with a wider host name', async () => {
  const [port, web] = [await mesh.port(), await mesh.http('web')];
  await mesh.apply(
    joinDocuments(
      service(port),
      gateway('door', { istio: 'ingressgateway' }, [
        { port, protocol: 'HTTPS', hosts: ['strict.test'], tls: { mode: 'MUTUAL', credentialName: 'strict' } },
        { port, protocol: 'HTTPS', hosts: ['*.test'], tls: { mode: 'SIMPLE', credentialName: 'web' } },
      ]),
      secret('strict', mesh.authority.issue(['strict.test']), { 'ca.crt': mesh.authority.certificate }),
      secret('web', mesh.authority.issue(['web.test', 'strict.test'])),
      routedHost('strict.test', web, ['door']),
    ),
  );
  const client = await Http3Client.start('http3', 'strict.test', port);
  expect((await client.request('strict.test')).status).toBe(421);
  expect((await client.connections()).http3).toBe(1);
  await client.stop();
  const page = JSON.parse(await mesh.page('/debug/push_status')) as Record<string, Record<string, { message: string }>>;
  expect(Object.entries(page.pilot_http3_not_offered!)).toEqual([
    ['Gateway/shop/door server port-0', expect.objectContaining({ message: expect.stringContaining('mode MUTUAL') })],
  ]);
});
