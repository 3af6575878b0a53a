import { describe, expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import type { Cluster } from '../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import type { Listener } from '../../gen/envoy/config/listener/v3/listener_pb.ts';
import type { RouteConfiguration } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { buildClusters, buildListeners, buildRoutes, type EnvoyResource } from '../index.ts';
import { originsOf } from './message-origin.ts';

const { context } = givenMesh(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: web-entry, namespace: shop }
spec:
  hosts: [web.test]
  resolution: STATIC
  ports: [{ number: 80, name: http, protocol: HTTP }]
  endpoints: [{ address: 10.1.0.1 }]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: db-entry, namespace: shop }
spec:
  hosts: [db.test]
  addresses: [10.2.0.1]
  resolution: STATIC
  ports: [{ number: 5432, name: tcp, protocol: TCP }]
  endpoints: [{ address: 10.1.0.2 }]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: web-rule, namespace: shop }
spec: { host: web.test, subsets: [{ name: v1, labels: { v: "1" } }, { name: v2, labels: { v: "2" } }] }
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: web-routes, namespace: shop }
spec:
  hosts: [web.test]
  gateways: [mesh, shop/door]
  http:
    - match: [{ uri: { prefix: /old } }]
      redirect: { uri: /new }
    - match: [{ uri: { prefix: /team } }]
      delegate: { name: team, namespace: shop }
    - route: [{ destination: { host: web.test, subset: v1 } }]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: team, namespace: shop }
spec:
  http:
    - match: [{ uri: { prefix: /elsewhere } }]
      route: [{ destination: { host: web.test } }]
    - match: [{ uri: { prefix: /another } }]
      route: [{ destination: { host: web.test } }]
    - match: [{ uri: { prefix: /team/a } }]
      route: [{ destination: { host: web.test, subset: v2 } }]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: db-routes, namespace: shop }
spec:
  hosts: [db.test]
  tcp:
    - match: [{ port: 1 }]
      route: [{ destination: { host: web.test } }]
    - match: [{ sourceSubnet: 10.7.0.0/16 }]
      route: [{ destination: { host: db.test } }]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: { name: door, namespace: shop }
spec:
  selector: { app: door }
  servers:
    - port: { number: 80, name: http, protocol: HTTP }
      hosts: ["*"]
    - port: { number: 443, name: https, protocol: HTTPS }
      hosts: [web.test]
      tls: { mode: SIMPLE, credentialName: web-cert }
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: { name: closed, namespace: shop }
spec:
  workloadSelector: { labels: { app: closed } }
  outboundTrafficPolicy: { mode: REGISTRY_ONLY }
  ingress:
    - port: { number: 8080, name: http, protocol: HTTP }
      defaultEndpoint: 127.0.0.1:9090
  egress:
    - port: { number: 81, name: other, protocol: HTTP }
      hosts: ["./web.test"]
    - port: { number: 80, name: http, protocol: HTTP }
      hosts: ["./web.test"]
    - hosts: ["*/*"]
`);
const openShape = givenShape({ namespace: 'shop' }, context);
const closedShape = givenShape({ namespace: 'shop', labels: { app: 'closed' } }, context);
const door = givenShape({ type: 'router', namespace: 'shop', labels: { app: 'door' } }, context);

/** Returns `KIND/NAME PATH` for each origin, without the namespace, which is always the same. */
function text(message: Parameters<typeof originsOf>[0]): string[] {
  return originsOf(message).map(({ key, path = [] }) => [`${key.kind}/${key.name}`, ...path].join(' '));
}

function resourceNamed<T>(resources: readonly EnvoyResource[], name: string): T {
  return resources.find((resource) => resource.name === name)!.message as T;
}

function routes(shape: typeof openShape, name: string): RouteConfiguration {
  return buildRoutes(shape, context, [name])[0]!.message as RouteConfiguration;
}

describe('origins of generated messages', () => {
  it('a cluster originates from its service and subset', () => {
    const clusters = buildClusters(openShape, context);
    expect(text(resourceNamed<Cluster>(clusters, 'outbound|80||web.test'))).toEqual([
      'ServiceEntry/web-entry',
      'DestinationRule/web-rule',
    ]);
    expect(text(resourceNamed<Cluster>(clusters, 'outbound|80|v2|web.test'))).toEqual([
      'ServiceEntry/web-entry',
      'DestinationRule/web-rule spec subsets 1',
    ]);
    expect(text(resourceNamed<Cluster>(clusters, 'BlackHoleCluster'))).toEqual([]);
  });

  it('a virtual host and its routes originate from the VirtualService, and delegated routes from the delegate first', () => {
    const host = routes(openShape, '80').virtualHosts.find(({ name }) => name === 'web.test:80')!;
    expect(text(host)).toEqual(['ServiceEntry/web-entry', 'VirtualService/web-routes spec hosts']);
    expect(host.routes.map(text)).toEqual([
      ['VirtualService/web-routes spec http 0'],
      ['VirtualService/team spec http 2', 'VirtualService/web-routes spec http 1'],
      ['VirtualService/web-routes spec http 2'],
    ]);
  });

  it('a TCP filter chain originates from its route or, if it has none, from the service', () => {
    const { filterChains, defaultFilterChain } = resourceNamed<Listener>(
      buildListeners(openShape, context),
      '10.2.0.1_5432',
    );
    expect([...filterChains, defaultFilterChain!].map(text)).toEqual([
      ['VirtualService/db-routes spec tcp 1', 'ServiceEntry/db-entry'],
      ['ServiceEntry/db-entry'],
    ]);
  });

  it('a default listener originates from its Sidecar object', () => {
    const listeners = buildListeners(closedShape, context);
    const inbound = resourceNamed<Listener>(listeners, 'virtualInbound').filterChains.find(({ name }) =>
      name.endsWith('_8080'),
    )!;
    expect(text(inbound)).toEqual(['Sidecar/closed spec ingress 0']);
    const outbound = resourceNamed<Listener>(listeners, '0.0.0.0_80');
    expect(outbound.filterChains.map(text)).toEqual([['Sidecar/closed spec egress 1']]);
    expect(text(outbound.defaultFilterChain!)).toEqual(['Sidecar/closed spec outboundTrafficPolicy']);
    const fallback = routes(closedShape, '80').virtualHosts.find(({ name }) => name === 'block_all')!;
    expect(text(fallback)).toEqual(['Sidecar/closed spec outboundTrafficPolicy']);
    expect(text(resourceNamed<Cluster>(buildClusters(closedShape, context), 'inbound|8080||'))).toEqual([
      'Sidecar/closed spec ingress 0',
    ]);
  });

  it("a gateway listener originates from the server and its hosts' VirtualServices", () => {
    const listeners = buildListeners(door, context);
    const chains = ['0.0.0.0_80', '0.0.0.0_443'].flatMap(
      (name) => resourceNamed<Listener>(listeners, name).filterChains,
    );
    expect(chains.map(text)).toEqual([['Gateway/door spec servers 0'], ['Gateway/door spec servers 1']]);
    const [host] = routes(door, 'http.80').virtualHosts;
    expect(text(host!)).toEqual(['Gateway/door spec servers 0', 'VirtualService/web-routes spec hosts']);
    expect(host!.routes.map((route) => text(route)[0])).toEqual([
      'VirtualService/web-routes spec http 0',
      'VirtualService/team spec http 2',
      'VirtualService/web-routes spec http 2',
    ]);
  });

  it('a message has no origins after encoding and decoding', () => {
    const [configuration] = buildRoutes(openShape, context, ['80']);
    expect(configuration!.bytes.length).toBeGreaterThan(0);
    const { virtualHosts } = configuration!.message as RouteConfiguration;
    expect(virtualHosts.map(text)).toEqual(virtualHosts.map(() => []));
  });
});
