import { describe, expect, it } from 'vitest';
import { type GivenNode, givenMesh, givenProxy } from '../../../test/fixtures/given-mesh.ts';
import { type ConfigKey, parseConfigKey } from '../config/config.ts';
import type { PushContext } from '../push-context/push-context.ts';
import { ShapeTable } from './shape-table.ts';
import { type PushChange, pushedTypeOf, typesToPush } from './types-to-push.ts';

const object = (kind: string, id: string, spec: string): string => {
  const [namespace, name] = id.split('/');
  return `---\napiVersion: networking.istio.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: ${spec}\n`;
};

const service = (id: string, host: string, extraSpec = ''): string =>
  object(
    'ServiceEntry',
    id,
    `{hosts: [${host}], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}]${extraSpec}}`,
  );

const mesh =
  service('shop/reviews', 'reviews.b', ', endpoints: [{address: 10.0.0.1}]') +
  service('pay/card', 'card.b') +
  service('pay/secret', 'secret.b', ', exportTo: ["."]') +
  object(
    'VirtualService',
    'shop/reviews',
    '{hosts: [reviews.b], http: [{route: [{destination: {host: reviews.b}}]}]}',
  ) +
  object('VirtualService', 'pay/card', '{hosts: [card.b], http: [{route: [{destination: {host: card.b}}]}]}') +
  object('DestinationRule', 'shop/reviews', '{host: reviews.b}') +
  object('DestinationRule', 'pay/card', '{host: card.b}') +
  object('Sidecar', 'shop/own', '{egress: [{hosts: ["./*"]}]}');

const { context } = givenMesh(mesh);

const shapes = new ShapeTable();

function typesToPushFor(
  change: PushChange,
  node: GivenNode,
  now: PushContext,
  previous: PushContext | undefined,
): Set<string> {
  const proxy = givenProxy(node);
  const previousState = previous && { context: previous, shape: shapes.shapeOf(proxy, previous) };
  return new Set(
    typesToPush(change, { context: now, shape: shapes.shapeOf(proxy, now, previousState?.shape) }, previousState),
  );
}

function types(node: GivenNode, ...keys: string[]): string[] {
  const change = { forced: false, keys: keys.map((key): ConfigKey => parseConfigKey(key)) };
  return [...typesToPushFor(change, node, context, context)];
}

const shop: GivenNode = { namespace: 'shop' };
const router: GivenNode = { type: 'router', namespace: 'istio-system' };

describe('a change', () => {
  it.each([
    ['ServiceEntry/shop/reviews.b', ['CDS', 'EDS', 'LDS', 'RDS', 'NDS', 'ECDS']],
    ['ServiceEntry/shop/reviews', ['CDS', 'EDS', 'LDS', 'RDS', 'NDS', 'ECDS']],
    ['Endpoints/shop/reviews.b', ['EDS']],
    ['VirtualService/shop/reviews', ['CDS', 'LDS', 'RDS', 'ECDS']],
    ['DestinationRule/shop/reviews', ['CDS', 'EDS', 'LDS', 'RDS']],
    ['Sidecar/shop/own', ['CDS', 'LDS', 'RDS', 'NDS', 'ECDS']],
    ['MeshConfig//mesh', ['CDS', 'EDS', 'LDS', 'RDS', 'PCDS']],
    ['AuthorizationPolicy/shop/p', ['LDS']],
    ['PeerAuthentication/istio-system/p', ['CDS', 'EDS', 'LDS']],
    ['Secret/shop/cert', ['SDS', 'ECDS']],
    ['ConfigMap/shop/ca', ['SDS']],
    ['RequestAuthentication/shop/p', ['LDS']],
    ['AuthorizationPolicy/istio-system/p', ['LDS']],
    ['Telemetry/shop/t', ['LDS']],
    ['EnvoyFilter/shop/f', ['CDS', 'EDS', 'LDS', 'RDS', 'ECDS', 'BDS']],
    ['WasmPlugin/shop/w', ['LDS', 'ECDS']],
    ['DNSName/shop/reviews.b', ['NDS']],
  ])("affects a sidecar if the object is in the sidecar's scope: %s", (key, expected) => {
    expect(types(shop, key)).toEqual(expected);
  });

  it.each([
    'ServiceEntry/pay/card.b',
    'Endpoints/pay/card.b',
    'VirtualService/pay/card',
    'DestinationRule/pay/card',
    'Sidecar/pay/other',
    'Gateway/shop/gw',
    'PeerAuthentication/pay/p',
    'WorkloadGroup/shop/g',
    'ProxyConfig/shop/p',
    'AuthorizationPolicy/pay/p',
    'EnvoyFilter/pay/f',
    'DNSName/pay/card.b',
    'Service/pay/card',
    // Effects of these objects are notified as a service, endpoints or routes, or are visible in the proxy's shape.
    'Pod/shop/web-0',
    'EndpointSlice/shop/reviews-x',
    'Node//n',
    'Ingress/shop/i',
    'HTTPRoute/shop/r',
    'KubernetesGateway/shop/g',
    'ReferenceGrant/shop/g',
    'GatewayClass//istio',
    'Proxy/Kubernetes/10.9.9.9',
  ])("does not affect a sidecar if the object is outside the sidecar's scope: %s", (key) => {
    expect(types(shop, key)).toEqual([]);
  });

  it.each([
    ['PeerAuthentication/pay/p', ['CDS', 'EDS']],
    ['PeerAuthentication/shop/p', ['CDS', 'EDS']],
    ['PeerAuthentication/other/p', ['CDS', 'EDS', 'LDS']],
    ['PeerAuthentication/nobody/p', []],
    ['RequestAuthentication/pay/p', []],
  ])('affects a sidecar only if it changes how services of a namespace in scope are called: %s', (key, expected) => {
    expect(types({ namespace: 'other' }, key)).toEqual(expected);
  });

  it('affects a sidecar if it concerns services that were in scope and are now removed', () => {
    const change = { forced: false, keys: [parseConfigKey('PeerAuthentication/pay/p')] };
    const hidden = givenMesh(mesh + object('Sidecar', 'other/own', '{egress: [{hosts: ["shop/*"]}]}')).context;
    expect(typesToPushFor(change, { namespace: 'other' }, hidden, context)).toEqual(new Set(['CDS', 'EDS']));
    expect(typesToPushFor(change, { namespace: 'other' }, hidden, hidden)).toEqual(new Set());
  });

  it('affects a sidecar without a Sidecar object if the object is exported to it', () => {
    expect(types({ namespace: 'other' }, 'ServiceEntry/pay/card.b')).toContain('CDS');
    expect(types({ namespace: 'other' }, 'ServiceEntry/pay/secret.b')).toEqual([]);
  });

  it('affects a sidecar if the object was in scope and is now removed', () => {
    const nextMesh = givenMesh(
      mesh.replace(service('shop/reviews', 'reviews.b', ', endpoints: [{address: 10.0.0.1}]'), ''),
    ).context;
    const change = { forced: false, keys: [parseConfigKey('ServiceEntry/shop/reviews.b')] };
    expect(typesToPushFor(change, shop, nextMesh, context)).toContain('CDS');
    expect(typesToPushFor(change, shop, nextMesh, nextMesh)).toEqual(new Set());
  });

  it("affects a sidecar if it concerns a service of the sidecar's own workload, in scope or not", () => {
    const ownContext = givenMesh(mesh.replace('"./*"', '"~/*"')).context;
    const change = { forced: false, keys: [parseConfigKey('ServiceEntry/shop/reviews.b')] };
    expect(typesToPushFor(change, { ...shop, ip: '10.0.0.1' }, ownContext, ownContext)).toContain('LDS');
    expect(typesToPushFor(change, { ...shop, ip: '10.0.0.2' }, ownContext, ownContext)).toEqual(new Set());
  });

  it("affects a sidecar if it concerns a rule for a service of the sidecar's own workload, in scope or not", () => {
    const ownContext = givenMesh(mesh.replace('"./*"', '"~/*"')).context;
    const change = { forced: false, keys: [parseConfigKey('DestinationRule/shop/reviews')] };
    expect(typesToPushFor(change, { ...shop, ip: '10.0.0.1' }, ownContext, ownContext)).toContain('CDS');
    expect(typesToPushFor(change, { ...shop, ip: '10.0.0.2' }, ownContext, ownContext)).toEqual(new Set());
  });

  it("affects a sidecar's listeners if endpoints change which services its workload has", () => {
    const movedContext = givenMesh(mesh.replace('10.0.0.1', '10.0.0.7')).context;
    const change = { forced: false, keys: [parseConfigKey('Endpoints/shop/reviews.b')] };
    const of = (ip: string): string[] => [...typesToPushFor(change, { ...shop, ip }, movedContext, context)].sort();
    expect(of('10.0.0.7')).toEqual(['BDS', 'CDS', 'ECDS', 'EDS', 'LDS', 'NDS', 'RDS']);
    expect(of('10.0.0.1')).toEqual(['BDS', 'CDS', 'ECDS', 'EDS', 'LDS', 'NDS', 'RDS']);
    expect(of('10.0.0.9')).toEqual(['EDS']);
  });
});

describe('a change for a router', () => {
  it.each([
    ['Gateway/shop/gw', ['CDS', 'LDS', 'RDS', 'ECDS']],
    ['VirtualService/pay/card', ['CDS', 'LDS', 'RDS', 'ECDS']],
    ['DestinationRule/pay/card', ['CDS', 'EDS', 'LDS', 'RDS']],
    ['ServiceEntry/pay/card.b', ['CDS', 'EDS', 'LDS', 'RDS', 'NDS', 'ECDS']],
    ['ServiceEntry/pay/secret.b', []],
    ['Sidecar/shop/own', []],
    ['PeerAuthentication/pay/p', ['CDS', 'EDS']],
    ['PeerAuthentication/istio-system/p', ['CDS', 'EDS', 'LDS']],
    ['Secret/istio-system/cert', ['SDS', 'ECDS']],
    ['ConfigMap/istio-system/ca', ['SDS']],
    // A gateway's credentials are in its own namespace.
    ['Secret/shop/cert', ['ECDS']],
    ['ConfigMap/shop/ca', []],
  ])('affects the router according to visibility: %s', (key, expected) => {
    expect(types(router, key)).toEqual(expected);
  });
});

describe('a change in general', () => {
  it('affects everything if it is forced or nothing was sent before', () => {
    const all = ['CDS', 'EDS', 'LDS', 'RDS', 'SDS', 'NDS', 'ECDS', 'PCDS', 'BDS'];
    expect([...typesToPushFor({ forced: true, keys: [] }, shop, context, context)]).toEqual(all);
    expect([...typesToPushFor({ forced: false, keys: [] }, shop, context, undefined)]).toEqual(all);
  });

  it('affects no proxy if it contains no objects', () => {
    expect(types(shop)).toEqual([]);
  });

  it('is classified by type URL', () => {
    expect(pushedTypeOf('type.googleapis.com/envoy.config.cluster.v3.Cluster')).toBe('CDS');
    expect(pushedTypeOf('type.googleapis.com/x.Y')).toBeUndefined();
  });
});
