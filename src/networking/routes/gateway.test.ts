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

/** `domains → names of routes`. */
function routes(yaml: string, name = 'http.80'): string[] {
  const shape = givenShape({ type: 'router', namespace: 'ingress' });
  const [resource] = buildRoutes(shape, givenMesh(yaml).context, [name]);
  const { virtualHosts } = resource!.message as RouteConfiguration;
  return virtualHosts.map((host) => `${host.domains} → ${host.routes.map((route) => route.name)}`);
}

describe('routes of a gateway', () => {
  it('are for the hosts that server and virtual service share, the narrower of the two', () => {
    const yaml =
      gateway(httpServer('["*.a.test", b.test]')) +
      virtualService('shop', 'one', '[x.a.test, other.test]') +
      virtualService('shop', 'two', '["*.test"]');
    expect(routes(yaml)).toEqual(['*.a.test,b.test → two', 'x.a.test → one']);
  });

  it('are of one virtual host where two objects spell a host differently: Envoy refuses two of one name', () => {
    const yaml =
      gateway(httpServer('["*.Test", "Shop.test", "shop.Test"]')) +
      virtualService('shop', 'one', '[Shop.Test]', 'match: [{ uri: { prefix: /one } }],') +
      virtualService('bank', 'two', '[shop.test]');
    expect(routes(yaml)).toEqual(['shop.test → one,two']);
  });

  it('are those of virtual services in the namespace that the server names', () => {
    const yaml =
      gateway(httpServer('["shop/a.test", "./b.test"]')) +
      virtualService('shop', 'shop-a', '[a.test, b.test]') +
      virtualService('ingress', 'own-b', '[a.test, b.test]');
    expect(routes(yaml)).toEqual(['a.test → shop-a', 'b.test → own-b']);
  });

  it('of one host are joined oldest first, with what takes everything last', () => {
    const yaml =
      gateway(httpServer('["*"]')) +
      virtualService('shop', 'everything', '[a.test]') +
      virtualService('shop', 'cart', '[a.test]', 'match: [{ uri: { prefix: /cart } }],') +
      virtualService('shop', 'never', '[a.test]');
    expect(routes(yaml)).toEqual(['a.test → cart,everything']);
  });

  it('say so when there are none, and are none when the gateway is gone', () => {
    expect(routes(gateway(httpServer('["*"]')))).toEqual(['* → ']);
    expect(routes('', 'http.80')).toEqual([]);
  });

  it('ask for TLS where a server redirects, on HTTP and behind another proxy on HTTPS', () => {
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

  it('of an HTTPS server are those of its own hosts', () => {
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
