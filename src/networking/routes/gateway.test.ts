import { describe, expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import { VirtualHost_TlsRequirementType } from '../../gen/envoy/config/route/v3/route_components_pb.ts';
import type { RouteConfiguration } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { buildRoutes } from './build.ts';

function gateway(servers: string): string {
  return `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: gw, namespace: ingress }
spec: { selector: {}, servers: [${servers}] }
---`;
}

function httpServer(hosts: string): string {
  return `{ port: { number: 80, name: http, protocol: HTTP }, hosts: ${hosts} }`;
}

function virtualService(namespace: string, name: string, hosts: string, match = ''): string {
  return `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: ${name}, namespace: ${namespace} }
spec:
  hosts: ${hosts}
  gateways: [ingress/gw]
  http: [{ name: ${name}, ${match} route: [{ destination: { host: to.test } }] }]
---`;
}

/** Returns `DOMAINS → NAMES OF ROUTES` for each virtual host. */
function routes(yaml: string, name = 'http.80'): string[] {
  const shape = givenShape({ type: 'router', namespace: 'ingress' });
  const [resource] = buildRoutes(shape, givenMesh(yaml).context, [name]);
  const { virtualHosts } = resource!.message as RouteConfiguration;
  return virtualHosts.map((host) => `${host.domains} → ${host.routes.map((route) => route.name)}`);
}

describe('routes of a gateway', () => {
  it('routes serve the hosts that the server and the VirtualService have in common', () => {
    const yaml =
      gateway(httpServer('["*.a.test", b.test]')) +
      virtualService('shop', 'one', '[x.a.test, other.test]') +
      virtualService('shop', 'two', '["*.test"]');
    expect(routes(yaml)).toEqual(['*.a.test,b.test → two', 'x.a.test → one']);
  });

  it('an IPv6 address in a domain has brackets', () => {
    const yaml = gateway(httpServer('["*"]')) + virtualService('shop', 'one', '["2001:db8::1"]');
    expect(routes(yaml)).toEqual(['[2001:db8::1] → one']);
  });

  it('two spellings of a host share one virtual host, because Envoy rejects duplicate names', () => {
    const yaml =
      gateway(httpServer('["*.Test", "Shop.test", "shop.Test"]')) +
      virtualService('shop', 'one', '[Shop.Test]', 'match: [{ uri: { prefix: /one } }],') +
      virtualService('bank', 'two', '[shop.test]');
    expect(routes(yaml)).toEqual(['shop.test → one,two']);
  });

  it('a server with a namespace serves only VirtualServices in that namespace', () => {
    const yaml =
      gateway(httpServer('["shop/a.test", "./b.test"]')) +
      virtualService('shop', 'shop-a', '[a.test, b.test]') +
      virtualService('ingress', 'own-b', '[a.test, b.test]');
    expect(routes(yaml)).toEqual(['a.test → shop-a', 'b.test → own-b']);
  });

  it('routes for the same host are joined oldest first, with catch-all routes last', () => {
    const yaml =
      gateway(httpServer('["*"]')) +
      virtualService('shop', 'everything', '[a.test]') +
      virtualService('shop', 'cart', '[a.test]', 'match: [{ uri: { prefix: /cart } }],') +
      virtualService('shop', 'never', '[a.test]');
    expect(routes(yaml)).toEqual(['a.test → cart,everything']);
  });

  it("routes of VirtualServices that are private to the gateway's namespace come first", () => {
    const match = (path: string): string => `match: [{ uri: { prefix: ${path} } }],`;
    const yaml =
      gateway(httpServer('["*"]')) +
      virtualService('shop', 'public', '[a.test]', match('/a')) +
      virtualService('shop', 'sent', '[a.test]', match('/b')).replace('spec:', 'spec:\n  exportTo: [ingress]') +
      virtualService('ingress', 'own', '[a.test]', match('/c')).replace('spec:', 'spec:\n  exportTo: ["."]');
    expect(routes(yaml)).toEqual(['a.test → own,sent,public']);
  });

  it('a gateway without routes has a blackhole host, and a deleted gateway has no virtual host', () => {
    expect(routes(gateway(httpServer('["*"]')))).toEqual(['* → ']);
    expect(routes('', 'http.80')).toEqual([]);
  });

  it('a server with an HTTPS redirect requires TLS, both on HTTP and on HTTPS behind another proxy', () => {
    const tls = 'tls: { mode: SIMPLE, serverCertificate: /c, privateKey: /k, httpsRedirect: true }';
    const yaml =
      gateway(
        `{ port: { number: 80, name: http, protocol: HTTP }, hosts: ["*"], tls: { httpsRedirect: true } },
         { port: { number: 443, name: https, protocol: HTTPS }, hosts: ["*"], ${tls} }`,
      ) + virtualService('shop', 'one', '[a.test]');
    const shape = givenShape({ type: 'router', namespace: 'ingress' });
    for (const name of ['http.80', 'https.443.https.gw.ingress']) {
      const [resource] = buildRoutes(shape, givenMesh(yaml).context, [name]);
      const { virtualHosts } = resource!.message as RouteConfiguration;
      expect(virtualHosts.map(({ domains, requireTls, routes }) => [domains[0], requireTls, routes.length])).toEqual([
        ['*', VirtualHost_TlsRequirementType.ALL, 0],
        ['a.test', VirtualHost_TlsRequirementType.ALL, 1],
      ]);
    }
  });

  it('an HTTPS server serves only its own hosts', () => {
    const tls = 'tls: { mode: SIMPLE, serverCertificate: /c, privateKey: /k }';
    const server = (name: string, host: string): string =>
      `{ port: { number: 443, name: ${name}, protocol: HTTPS }, hosts: [${host}], ${tls} }`;
    const yaml =
      gateway(`${server('one', 'a.test')}, ${server('two', 'b.test')}`) +
      virtualService('shop', 'both', '[a.test, b.test]');
    expect(routes(yaml, 'https.443.one.gw.ingress')).toEqual(['a.test → both']);
    expect(routes(yaml, 'https.443.two.gw.ingress')).toEqual(['b.test → both']);
  });
});

describe('VirtualService that is bound to several servers of a port', () => {
  const gatewayOf = (name: string, servers: string): string => gateway(servers).replace('name: gw', `name: ${name}`);
  const bound = (name: string, gateways: string, http: string, hosts = '[a.test]'): string => `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: ${name}, namespace: shop }
spec: { hosts: ${hosts}, gateways: ${gateways}, http: [${http}] }
---`;
  const route = (name: string, match: string): string =>
    `{ name: ${name}, match: [${match}], route: [{ destination: { host: to.test } }] }`;
  const twoGateways = gatewayOf('first', httpServer('["*"]')) + gatewayOf('second', httpServer('["*"]'));
  const bothGateways = '[ingress/first, ingress/second]';

  it('the routes of each Gateway are added once, with catch-all routes last', () => {
    const yaml =
      twoGateways +
      bound(
        'one',
        bothGateways,
        [
          route('second', '{ uri: { prefix: /a }, gateways: [ingress/second] }'),
          route('first', '{ uri: { prefix: /b }, gateways: [ingress/first] }'),
          route('both', '{ uri: { prefix: /c } }'),
          route('everything', '{ uri: { prefix: / } }'),
          route('never', '{ uri: { prefix: /d }, gateways: [ingress/second] }'),
        ].join(),
      );
    expect(routes(yaml)).toEqual(['a.test → first,both,second,everything']);
  });

  it('the routes of the second Gateway apply if the first Gateway has none for the host', () => {
    const separateGateways = gatewayOf('first', httpServer('[b.test]')) + gatewayOf('second', httpServer('[a.test]'));
    const http = [
      route('first', '{ uri: { prefix: /a }, gateways: [ingress/first] }'),
      route('second', '{ uri: { prefix: /b }, gateways: [ingress/second] }'),
    ].join();
    expect(routes(separateGateways + bound('one', bothGateways, http, '[a.test, b.test]'))).toEqual([
      'a.test → second',
      'b.test → first',
    ]);
  });

  it('the routes of several VirtualServices are added, oldest first', () => {
    const secondRoute = route('of-second', '{ gateways: [ingress/second], uri: { prefix: /a } }');
    const yaml =
      twoGateways +
      bound(
        'one',
        bothGateways,
        `${secondRoute}, ${route('of-first', '{ uri: { prefix: /b }, gateways: [ingress/first] }')}`,
      ) +
      bound('two', '[ingress/second]', route('younger', '{ uri: { prefix: /c } }'));
    expect(routes(yaml)).toEqual(['a.test → of-first,of-second,younger']);
  });

  it("the routes of each port that maps to the pod's port are added, even if one VirtualService contains all of them", () => {
    const server = (number: number): string =>
      `{ port: { number: ${number}, name: http-${number}, protocol: HTTP }, hosts: ["*"] }`;
    const service = { hostname: 'gw.ingress.svc.cluster.local', labels: {} };
    const serviceTargets = [80, 8080].map((number) => ({
      ...{ service, targetPort: 8000 },
      port: { number, name: `http-${number}`, protocol: 'HTTP' },
    }));
    const http = [80, 8080].map((port) => route(`port-${port}`, `{ uri: { prefix: /${port} }, port: ${port} }`)).join();
    const yaml = gateway([80, 8080].map(server).join()) + bound('one', '[ingress/gw]', http);
    const shape = { ...givenShape({ type: 'router', namespace: 'ingress' }), serviceTargets } as never;
    const [resource] = buildRoutes(shape, givenMesh(yaml).context, ['http.8000']);
    const { virtualHosts } = resource!.message as RouteConfiguration;
    expect(virtualHosts.map((host) => host.routes.map(({ name }) => name))).toEqual([['port-80', 'port-8080']]);
  });

  it('the routes are built once if no match depends on the server', () => {
    const yaml =
      twoGateways +
      bound('one', bothGateways, `${route('a', '{ uri: { prefix: /a } }')}, ${route('b', '{ uri: { prefix: /b } }')}`);
    expect(routes(yaml)).toEqual(['a.test → a,b']);
  });

  it('the routes of hosts on different servers are separate', () => {
    const separateGateways =
      gatewayOf('first', httpServer('["*"]')) + gatewayOf('second', httpServer('[a.test, c.test]'));
    const http = [
      route('first', '{ uri: { prefix: /a }, gateways: [ingress/first] }'),
      route('second', '{ uri: { prefix: /b }, gateways: [ingress/second] }'),
    ].join();
    expect(routes(separateGateways + bound('one', bothGateways, http, '[a.test, b.test, c.test]'))).toEqual([
      'a.test,c.test → first,second',
      'b.test → first',
    ]);
  });
});
