import { describe, expect, it } from 'vitest';
import { validateFiles } from '../../config/validation/validate-files.ts';

function object(kind: string, name: string, spec: string): string {
  const apiVersion = kind === 'Service' ? 'v1' : 'networking.istio.io/v1';
  return `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: ${name}, namespace: shop}\nspec: ${spec}\n---\n`;
}

async function unserved(...documents: string[]): Promise<string[]> {
  const { problems } = await validateFiles([], [{ file: 'a.yaml', text: documents.join('') }]);
  return problems
    .filter(({ code }) => code === 'ROUTE_NOT_APPLIED')
    .map(({ object: of, field, other }) => `${of} ${field}; ${other?.object} ${other?.field}`);
}

const gateway = (...servers: string[]): string =>
  object('Gateway', 'g', `{selector: {istio: edge}, servers: [${servers.join(', ')}]}`);
const server = (number: number, protocol: string, tls = '', host = 'a.test'): string =>
  `{port: {number: ${number}, name: p${number}, protocol: ${protocol}}, hosts: [${host}]${tls && `, tls: {${tls}}`}}`;
const passthrough = 'mode: PASSTHROUGH';
const terminated = 'mode: SIMPLE, credentialName: c';
const to = 'route: [{destination: {host: web, port: {number: 80}}}]';
const lists: Readonly<Record<string, string>> = {
  http: `http: [{${to}}]`,
  tls: `tls: [{match: [{sniHosts: [a.test]}], ${to}}]`,
  tcp: `tcp: [{${to}}]`,
};
const routes = (list: string, gateways = '[g]', host = 'a.test'): string =>
  object(
    'VirtualService',
    'v',
    `{hosts: [${host}], gateways: ${gateways}, ${lists[list]!.replace('sniHosts: [a.test]', `sniHosts: [${host}]`)}}`,
  );
const at = (list: string): string[] => [`VirtualService shop/v spec.${list}; Gateway shop/g spec.servers[0]`];

describe('VirtualService routes at a gateway', () => {
  it.each([
    ['HTTP', '', 'http'],
    ['GRPC', '', 'http'],
    ['HTTPS', terminated, 'http'],
    ['HTTPS', passthrough, 'tls'],
    ['TLS', passthrough, 'tls'],
    ['TLS', terminated, 'tcp'],
    ['TCP', '', 'tcp'],
  ])('apply at a server with protocol %s {%s} only if they are %s routes', async (protocol, tls, appliedProtocol) => {
    for (const list of ['http', 'tls', 'tcp'])
      expect(await unserved(gateway(server(8443, protocol, tls)), routes(list))).toEqual(
        list === appliedProtocol ? [] : at(list),
      );
  });

  it("apply if one of the host's servers has their protocol", async () => {
    const [tlsServer, plain] = [server(443, 'HTTPS', passthrough), server(80, 'HTTP')];
    expect(await unserved(gateway(tlsServer, plain), routes('http'))).toEqual([]);
    expect(await unserved(gateway(tlsServer, server(80, 'HTTP', '', 'b.test')), routes('http'))).toEqual(at('http'));
  });

  it('are not reported if a Gateway is unknown or serves none of their hosts', async () => {
    expect(await unserved(gateway(server(443, 'HTTPS', passthrough)), routes('http', '[g, edge/other]'))).toEqual([]);
    expect(await unserved(gateway(server(443, 'HTTPS', passthrough, 'b.test')), routes('http'))).toEqual([]);
  });

  it('are reported at a match for a port without a matching server', async () => {
    const matching = (port: number): string =>
      object('VirtualService', 'v', `{hosts: [a.test], gateways: [g], http: [{match: [{port: ${port}}], ${to}}]}`);
    const gatewayOfBoth = gateway(server(443, 'HTTPS', passthrough), server(80, 'HTTP'));
    expect(await unserved(gatewayOfBoth, matching(80))).toEqual([]);
    expect(await unserved(gatewayOfBoth, matching(443))).toEqual([
      'VirtualService shop/v spec.http[0].match[0].port; Gateway shop/g spec.servers[0]',
    ]);
  });
});

describe('VirtualService routes in the mesh', () => {
  const service = (ports: string): string => object('Service', 'web', `{clusterIP: 10.0.0.1, ports: [${ports}]}`);

  it.each([
    ['name: http', ['http']],
    ['name: grpc', ['http']],
    ['name: web', ['http', 'tcp']],
    ['name: tcp', ['tcp']],
    ['name: redis', ['tcp']],
    ['name: tls', ['tls']],
    ['name: https', ['tls']],
  ])('apply to a Service with a port {%s} only if their protocols are among %j', async (port, appliedProtocols) => {
    for (const list of ['http', 'tls', 'tcp']) {
      const expected = [`VirtualService shop/v spec.${list}; Service shop/web spec.ports`];
      const reports = await unserved(
        service(`{port: 80, ${port}}`),
        routes(list, '[mesh]', 'web.shop.svc.cluster.local'),
      );
      expect(reports).toEqual(appliedProtocols.includes(list) ? [] : expected);
    }
  });

  it('are not reported for hosts without a service or for wildcards, or if an HTTP proxy receives requests', async () => {
    const tcp = service('{port: 80, name: tcp}');
    expect(await unserved(tcp, routes('http', '[mesh]', 'x.test'))).toEqual([]);
    expect(await unserved(tcp, routes('http', '[mesh]', '"*.shop.svc.cluster.local"'))).toEqual([]);
    const proxy = object(
      'Sidecar',
      's',
      '{egress: [{port: {number: 8888, name: p, protocol: HTTP_PROXY}, bind: 127.0.0.1, hosts: ["*/*"]}]}',
    );
    expect(await unserved(tcp, proxy, routes('http', '[mesh]', 'web'))).toEqual([]);
    expect(await unserved(tcp, routes('http', '[mesh]', 'web'))).toHaveLength(1);
  });

  it('are not reported if they apply at a gateway', async () => {
    const gatewayAndMeshRoutes = routes('http', '[mesh, g]', 'web.shop.svc.cluster.local');
    const tcp = service('{port: 80, name: tcp}');
    const http = gateway(server(80, 'HTTP', '', '"*"'));
    expect(await unserved(tcp, http, gatewayAndMeshRoutes)).toEqual([]);
  });
});
