import { describe, expect, it } from 'vitest';
import { createAuthority } from '../../../../test/certs/authority.ts';
import { document, service, setOf } from '../../../../test/fixtures/given-objects.ts';
import { sized } from '../../../../test/harness/size-of-run.ts';
import { runToEnd } from '../../../runtime/turns.ts';
import { computeGatewayApiStatusInSteps } from './gateway-api-status.ts';
import type { GatewayApiCondition } from './object-conditions.ts';

const plain = '{name: plain, port: 80, protocol: HTTP}';
const gateway = (listeners = plain, extraSpec = '', name = 'front'): string =>
  document('Gateway', name, `{gatewayClassName: istio, ${extraSpec}listeners: [${listeners}]}`);
const route = (spec: string, metadata = {}): string => document('HTTPRoute', 'cart', spec, metadata);
const toCart = 'rules: [{backendRefs: [{name: cart, port: 80}]}]';
const edge = (fields: string, extraFields = ''): string =>
  `---\napiVersion: v1\nkind: Service\nmetadata: {name: edge, namespace: shop}\nspec: {clusterIP: 10.1.0.9, selector: {gateway.networking.k8s.io/gateway-name: front}, ports: [{port: 80}], ${fields}}\n${extraFields}\n`;

const statusesOf = (yaml: string) => runToEnd(computeGatewayApiStatusInSteps(setOf(yaml), 'cluster.local'));
const summaryOf = (conditions: readonly GatewayApiCondition[]): string[] =>
  conditions.map(({ type, status, reason }) => `${type} ${status} ${reason}`);
const gatewayOf = (yaml: string) => statusesOf(yaml).KubernetesGateway.get('shop/front')!;
const listenerOf = (yaml: string, index = 0) => {
  const { conditions, ...listener } = gatewayOf(yaml).listeners[index]!;
  return { ...listener, conditions: summaryOf(conditions) };
};

/** Returns the conditions of a route's first parent. */
function routeOf(yaml: string, namespace = 'shop'): string[] {
  return summaryOf(statusesOf(yaml).HTTPRoute.get(`${namespace}/cart`)!.parents[0]?.conditions ?? []);
}

const goodConditions = ['Accepted True Accepted', 'ResolvedRefs True ResolvedRefs'];
const cart = service('cart');

const at = (parentFields = '', rules = toCart): string =>
  route(`{parentRefs: [{name: front${parentFields}}], ${rules}}`);

describe('the status of a route with a Gateway as its parent', () => {
  const namedListener = '{name: plain, port: 80, protocol: HTTP, hostname: "*.shop.test"}';

  it.each<[string, string, string[]]>([
    ['is attached to the Gateway', gateway() + at() + cart, goodConditions],
    [
      'names a listener that does not exist',
      gateway() + at(', sectionName: other') + cart,
      ['Accepted False NoMatchingParent'],
    ],
    ['names a port without a listener', gateway() + at(', port: 81') + cart, ['Accepted False NoMatchingParent']],
    [
      'has no hostname in common with a listener',
      gateway(namedListener) + route(`{parentRefs: [{name: front}], hostnames: [a.test], ${toCart}}`) + cart,
      ['Accepted False NoMatchingListenerHostname'],
    ],
    [
      'has a kind that no listener permits',
      gateway('{name: plain, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: GRPCRoute}]}}') + at() + cart,
      ['Accepted False NotAllowedByListeners'],
    ],
    [
      'has a kind that the listener protocol does not support',
      gateway('{name: t, port: 80, protocol: TCP}') + at(', sectionName: t') + cart,
      ['Accepted False NotAllowedByListeners'],
    ],
  ])('is correct if the route %s', (_, yaml, expected) => {
    const expectedRest = expected.length === 1 ? ['ResolvedRefs True ResolvedRefs'] : [];
    expect(routeOf(yaml)).toEqual([...expected, ...expectedRest]);
  });

  it('reports that the route is not attached if the Gateway does not permit its namespace', () => {
    const other = route(`{parentRefs: [{name: front, namespace: shop}], ${toCart}}`, { namespace: 'other' });
    expect(routeOf(gateway() + other + service('cart', 'other'), 'other')).toEqual([
      'Accepted False NotAllowedByListeners',
      'ResolvedRefs True ResolvedRefs',
    ]);
  });

  it.each<[string, string, string]>([
    ['that does not exist', '{name: no, port: 80}', 'BackendNotFound'],
    ['without that port', '{name: cart, port: 81}', 'BackendNotFound'],
    ['of another kind', '{kind: ConfigMap, name: cart, port: 80}', 'InvalidKind'],
    ['of a namespace without a grant', '{name: cart, namespace: far, port: 80}', 'RefNotPermitted'],
  ])('reports an unresolved reference to a backend %s', (_, ref, reason) => {
    const rules = `rules: [{backendRefs: [{name: cart, port: 80}, ${ref}]}]`;
    const yaml = gateway() + at('', rules) + cart + service('cart', 'far');
    expect(routeOf(yaml)).toEqual([goodConditions[0], `ResolvedRefs False ${reason}`]);
  });

  it('reports an unresolved reference to a missing mirror', () => {
    const mirror = 'filters: [{type: RequestMirror, requestMirror: {backendRef: {name: no, port: 80}}}]';
    const yaml = gateway() + at('', `rules: [{${mirror}, backendRefs: [{name: cart, port: 80}]}]`) + cart;
    expect(routeOf(yaml)).toEqual([goodConditions[0], 'ResolvedRefs False BackendNotFound']);
  });

  it('reports an unresolved reference to a missing mirror of a Service', () => {
    const mirror = (ref: string) => `filters: [{type: RequestMirror, requestMirror: {backendRef: {${ref}}}}]`;
    for (const ref of ['name: no, port: 80', 'name: cart, port: 81', 'name: no, namespace: far, port: 80']) {
      const spec = `{parentRefs: [{group: "", kind: Service, name: cart}], rules: [{${mirror(ref)}, backendRefs: [{name: cart, port: 80}]}]}`;
      const yaml = document('HTTPRoute', 'r', spec) + cart;
      const [parent] = statusesOf(yaml).HTTPRoute.get('shop/r')!.parents;
      expect(summaryOf(parent!.conditions)).toEqual(['Accepted True Accepted', 'ResolvedRefs False BackendNotFound']);
    }
  });

  const cors = 'filters: [{type: CORS, cors: {}}]';
  const toCartBy = (filters: string): string => `{${filters}backendRefs: [{name: cart, port: 80}]}`;
  it.each([
    [`rules: [${toCartBy(`${cors}, `)}]`, ['Accepted False UnsupportedValue', goodConditions[1]]],
    [
      `rules: [${toCartBy(`${cors}, `)}, ${toCartBy('matches: [{path: {value: /a}}], ')}]`,
      [goodConditions[0], 'PartiallyInvalid True UnsupportedValue', goodConditions[1]],
    ],
  ])('reports an unsupported filter: %s', (rules, expected) => {
    expect(routeOf(gateway() + at('', rules) + cart)).toEqual(expected);
  });

  it.each([
    ['that does not exist', ''],
    ['of another controller', document('GatewayClass', 'istio', '{controllerName: example.com/other}') + gateway()],
    ['of an unknown class', gateway().replace('istio', 'nobody')],
  ])('is not written by this control plane for a Gateway %s', (_, front) => {
    expect(routeOf(front + at() + cart)).toEqual([]);
  });

  it('is not written by this control plane for a Gateway of another revision', () => {
    const set = setOf(gateway() + at() + cart);
    const status = runToEnd(computeGatewayApiStatusInSteps(set, 'cluster.local', () => true));
    expect([status.KubernetesGateway.size, status.HTTPRoute.get('shop/cart')!.parents.length]).toEqual([0, 0]);
  });
});

describe('the status of a GRPCRoute', () => {
  const grpc = (parentFields = ''): string =>
    document(
      'GRPCRoute',
      'cart',
      `{parentRefs: [{name: front}], rules: [{backendRefs: [{name: cart, port: 80}${parentFields}]}]}`,
    );
  const statusOf = (yaml: string): string[] =>
    summaryOf(statusesOf(yaml).GRPCRoute.get('shop/cart')!.parents[0]!.conditions);

  it('is like that of an HTTPRoute, and the listener counts a GRPCRoute and an HTTPRoute of the same name as two routes', () => {
    const bothRoutes = gateway() + grpc() + at() + cart;
    expect(statusOf(bothRoutes)).toEqual(goodConditions);
    expect(routeOf(bothRoutes)).toEqual(goodConditions);
    expect(listenerOf(bothRoutes).attachedRoutes).toBe(2);
    expect(statusOf(gateway() + grpc(', {name: gone, port: 80}') + cart)[1]).toBe('ResolvedRefs False BackendNotFound');
  });

  it('reports that a listener permits only HTTPRoutes', () => {
    const httpOnlyListener = '{name: plain, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: HTTPRoute}]}}';
    expect(statusOf(gateway(httpOnlyListener) + grpc() + cart)[0]).toBe('Accepted False NotAllowedByListeners');
    expect(listenerOf(gateway(httpOnlyListener)).supportedKinds).toMatchObject([{ kind: 'HTTPRoute' }]);
  });
});

describe('the status of TLSRoutes and TCPRoutes', () => {
  const listeners =
    '{name: raw, port: 9000, protocol: TCP}, {name: through, port: 8443, protocol: TLS, hostname: "*.a.test", tls: {mode: Passthrough}}, ' +
    '{name: ended, port: 8444, protocol: TLS, tls: {certificateRefs: [{name: web}]}}, {name: web, port: 8443, protocol: HTTPS, hostname: b.test, tls: {certificateRefs: [{name: web}]}}';
  const tcp = (section: string, name = 'cart', port = 80): string =>
    document(
      'TCPRoute',
      'cart',
      `{parentRefs: [{name: front, sectionName: ${section}}], rules: [{backendRefs: [{name: ${name}, port: ${port}}]}]}`,
    );
  const tls = (section: string): string =>
    document(
      'TLSRoute',
      'cart',
      `{parentRefs: [{name: front, sectionName: ${section}}], hostnames: [x.a.test], rules: [{backendRefs: [{name: cart, port: 80}]}]}`,
    );
  const statusOf = (kind: 'TCPRoute' | 'TLSRoute', yaml: string): string[] =>
    summaryOf(statusesOf(gateway(listeners) + yaml + cart)[kind].get('shop/cart')!.parents[0]!.conditions);

  it.each([
    ['TCPRoute', tcp('raw'), goodConditions],
    ['TCPRoute', tcp('ended'), goodConditions],
    ['TCPRoute', tcp('through'), ['Accepted False NotAllowedByListeners', goodConditions[1]]],
    ['TCPRoute', tcp('raw', 'gone'), [goodConditions[0], 'ResolvedRefs False BackendNotFound']],
    ['TCPRoute', tcp('raw', 'cart', 81), [goodConditions[0], 'ResolvedRefs False BackendNotFound']],
    ['TLSRoute', tls('through'), goodConditions],
    ['TLSRoute', tls('raw'), ['Accepted False NotAllowedByListeners', goodConditions[1]]],
    ['TLSRoute', tls('ended'), goodConditions],
  ] as const)('is correct for a %s %#', (kind, yaml, expected) => {
    expect(statusOf(kind, yaml)).toEqual(expected);
  });

  it('lists the kinds that their listeners support, and that TLS and HTTPS share a port', () => {
    const [raw, passthrough, terminated, web] = gatewayOf(
      gateway(listeners) + tcp('raw') + tls('through') + cart,
    ).listeners;
    const kindsOf = (one = raw): string[] => one!.supportedKinds.map(({ kind }) => kind);
    expect([raw, passthrough, terminated, web].map(kindsOf)).toEqual([
      ['TCPRoute'],
      ['TLSRoute'],
      ['TLSRoute', 'TCPRoute'],
      ['HTTPRoute', 'GRPCRoute'],
    ]);
    expect([raw, passthrough, terminated].map((one) => one!.attachedRoutes)).toEqual([1, 1, 0]);
    for (const one of [raw, passthrough, web])
      expect(summaryOf(one!.conditions)).toContain('Conflicted False NoConflicts');
  });

  it('reports that a Service is an invalid parent of a TLSRoute', () => {
    const serviceRoute = document(
      'TLSRoute',
      'cart',
      '{parentRefs: [{kind: Service, group: "", name: cart}], rules: [{backendRefs: [{name: cart, port: 80}]}]}',
    );
    expect(statusOf('TLSRoute', serviceRoute)[0]).toBe('Accepted False NoMatchingParent');
  });
});

describe('the status of a route of a Service', () => {
  it.each([
    ['{kind: Service, group: "", name: cart}', goodConditions],
    ['{kind: Service, group: "", name: cart, port: 99}', ['Accepted False NoMatchingParent', goodConditions[1]]],
    ['{kind: Service, group: "", name: no}', ['Accepted False NoMatchingParent', goodConditions[1]]],
  ])('is correct for the parent %s', (parent, expected) => {
    expect(routeOf(route(`{parentRefs: [${parent}], ${toCart}}`) + cart)).toEqual(expected);
  });
});

describe('the status of a listener', () => {
  const noConflict = 'Conflicted False NoConflicts';
  const fine = ['Accepted True Accepted', 'Programmed True Programmed', 'ResolvedRefs True ResolvedRefs', noConflict];
  const routeKinds = ['HTTPRoute', 'GRPCRoute'].map((kind) => ({ group: 'gateway.networking.k8s.io', kind }));

  it('contains OverlappingTLSConfig if another HTTPS listener of the port has an overlapping hostname', () => {
    const https = (name: string, hostname: string, port = 443): string =>
      `{name: ${name}, port: ${port}, protocol: HTTPS${hostname}, tls: {certificateRefs: [{name: web}]}}`;
    const listeners = [
      https('wide', ', hostname: "*.x.test"'),
      https('narrow', ', hostname: a.x.test'),
      https('other', ', hostname: y.test'),
      https('all', '', 444),
    ];
    const overlaps = gatewayOf(gateway(listeners.join(', '))).listeners.map(({ conditions }) =>
      conditions
        .filter(({ type }) => type === 'OverlappingTLSConfig')
        .map(({ status, reason }) => `${status} ${reason}`),
    );
    expect(overlaps).toEqual([['True OverlappingHostnames'], ['True OverlappingHostnames'], [], []]);
  });

  it('contains the permitted kinds and the number of attached routes', () => {
    const parents = 'parentRefs: [{name: front, sectionName: plain}, {name: front, sectionName: other}]';
    const yaml = `${gateway(`${plain}, {name: other, port: 81, protocol: HTTP}`) + route(`{${parents}, ${toCart}}`)}${document('HTTPRoute', 'second', '{parentRefs: [{name: front, port: 80}]}')}`;
    expect(listenerOf(yaml)).toEqual({
      name: 'plain',
      supportedKinds: routeKinds,
      attachedRoutes: 2,
      conditions: fine,
    });
    expect(listenerOf(yaml, 1).attachedRoutes).toBe(1);
  });

  it.each<[string, string[], number]>([
    [
      '{name: t, port: 80, protocol: UDP}',
      ['Accepted False UnsupportedProtocol', 'Programmed False Invalid', fine[2]!, noConflict],
      0,
    ],
    [
      '{name: p, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: HTTPRoute}, {kind: TCPRoute}]}}',
      [fine[0]!, fine[1]!, 'ResolvedRefs False InvalidRouteKinds', noConflict],
      1,
    ],
    [
      '{name: p, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: TCPRoute}]}}',
      [fine[0]!, fine[1]!, 'ResolvedRefs False InvalidRouteKinds', noConflict],
      0,
    ],
  ])('is correct for %s', (listener, conditions, kinds) => {
    expect(listenerOf(gateway(listener))).toMatchObject({ conditions, supportedKinds: routeKinds.slice(0, kinds) });
  });

  const httpsListener = (ref: string): string =>
    `{name: s, port: 443, protocol: HTTPS, tls: {certificateRefs: [${ref}]}}`;
  const brokenConditions = (reason: string): string[] => [
    ...['Accepted True Accepted', 'Programmed False Invalid', `ResolvedRefs False ${reason}`, noConflict],
  ];
  const secret = (data: string): string =>
    `---\napiVersion: v1\nkind: Secret\nmetadata: {name: web, namespace: shop}\ndata: ${data}\n`;
  it.each([
    ['does not exist', '{name: web}', '', 'InvalidCertificateRef'],
    ['is invalid', '{name: web}', secret('{tls.crt: eA==, tls.key: eA==}'), 'InvalidCertificateRef'],
    ['is not a Secret', '{kind: ConfigMap, name: web}', '', 'InvalidCertificateRef'],
    ['is in a namespace without a grant', '{name: web, namespace: far}', '', 'RefNotPermitted'],
  ])('reports that the listener is inactive if its certificate %s', (_, ref, extraYaml, reason) => {
    expect(listenerOf(gateway(httpsListener(ref)) + extraYaml).conditions).toEqual(brokenConditions(reason));
  });

  it('reports that the listener is active if its certificate is valid', () => {
    const { certificate, privateKey } = createAuthority().issue(['shop.test']);
    const data = JSON.stringify({ 'tls.crt': btoa(certificate), 'tls.key': btoa(privateKey) });
    expect(listenerOf(gateway(httpsListener('{name: web}')) + secret(data)).conditions).toEqual(fine);
  });

  it('reports that the listener is active if a grant permits its certificate from another namespace', () => {
    const { certificate, privateKey } = createAuthority().issue(['shop.test']);
    const data = JSON.stringify({ 'tls.crt': btoa(certificate), 'tls.key': btoa(privateKey) });
    const grant = document(
      'ReferenceGrant',
      'g',
      '{from: [{group: gateway.networking.k8s.io, kind: Gateway, namespace: shop}], to: [{group: "", kind: Secret}]}',
      { namespace: 'far' },
    );
    const listener = httpsListener('{name: web, namespace: far}');
    const granted = gateway(listener) + grant;
    expect(listenerOf(granted + secret(data).replace('shop', 'far')).conditions).toEqual(fine);
    expect(listenerOf(granted + secret(data)).conditions).toEqual(brokenConditions('InvalidCertificateRef'));
  });

  it('reports a conflict on a port of another protocol', () => {
    const yaml = gateway(
      '{name: b, port: 80, protocol: HTTP}, {name: a, port: 80, protocol: HTTPS, tls: {certificateRefs: [{name: web}]}}',
    );
    expect(listenerOf(yaml).conditions).toEqual([
      ...['Accepted False ProtocolConflict', 'Programmed False Invalid', fine[2], 'Conflicted True ProtocolConflict'],
    ]);
    expect(listenerOf(yaml, 1).conditions[3]).toBe(noConflict);
  });
});

describe('the status of a Gateway', () => {
  const of = (yaml: string) => {
    const { conditions, addresses } = gatewayOf(yaml);
    return [...summaryOf(conditions), ...addresses.map(({ type, value }) => `${type} ${value}`)];
  };
  const acceptedReason = 'Accepted True Accepted';
  const balanced = 'status: {loadBalancer: {ingress: [{ip: 192.0.2.7}, {hostname: edge.test}]}}';

  it.each<[string, string, string[]]>([
    ['without a Service', gateway(), [acceptedReason, 'Programmed False AddressNotAssigned']],
    [
      'whose load balancer has no address yet',
      gateway() + edge('type: LoadBalancer'),
      [acceptedReason, 'Programmed False AddressNotAssigned'],
    ],
    [
      'whose load balancer has addresses',
      gateway() + edge('type: LoadBalancer, externalIPs: [192.0.2.8]', balanced),
      [
        acceptedReason,
        'Programmed True Programmed',
        'IPAddress 192.0.2.7',
        'Hostname edge.test',
        'IPAddress 192.0.2.8',
      ],
    ],
    [
      'whose Service is internal to the cluster',
      gateway() + edge('type: ClusterIP'),
      [acceptedReason, 'Programmed True Programmed', 'Hostname edge.shop.svc.cluster.local'],
    ],
    [
      'that names its Service',
      gateway(plain, 'addresses: [{type: Hostname, value: cart.shop.svc.cluster.local}], ') + cart,
      [acceptedReason, 'Programmed True Programmed', 'Hostname cart.shop.svc.cluster.local'],
    ],
    [
      'that names a Service that does not exist',
      gateway(plain, 'addresses: [{type: Hostname, value: no}], '),
      [acceptedReason, 'Programmed False AddressNotAssigned'],
    ],
    [
      'that requests an address',
      gateway(plain, 'addresses: [{type: IPAddress, value: 192.0.2.1}], ') + edge('type: ClusterIP'),
      ['Accepted False UnsupportedAddress', 'Programmed True Programmed', 'Hostname edge.shop.svc.cluster.local'],
    ],
    [
      'of which one listener is not accepted',
      gateway(`${plain}, {name: t, port: 81, protocol: UDP}`) + edge('type: ClusterIP'),
      ['Accepted True ListenersNotValid', 'Programmed True Programmed', 'Hostname edge.shop.svc.cluster.local'],
    ],
    [
      'of which no listener is accepted',
      gateway('{name: t, port: 81, protocol: UDP}') + edge('type: ClusterIP'),
      ['Accepted False ListenersNotValid', 'Programmed False Invalid', 'Hostname edge.shop.svc.cluster.local'],
    ],
  ])('is correct for a Gateway %s', (_, yaml, expected) => {
    expect(of(yaml)).toEqual(expected);
  });
});

it('a GatewayClass is accepted if it belongs to this control plane, and otherwise receives no status', () => {
  const ownClass = document('GatewayClass', 'own', '{controllerName: istio.io/gateway-controller}');
  const otherClass = document('GatewayClass', 'other', '{controllerName: example.com/other}');
  const classes = statusesOf(ownClass + otherClass).GatewayClass;
  expect([...classes].map(([key, { conditions }]) => [key, ...summaryOf(conditions)])).toEqual([
    ['/own', 'Accepted True Accepted'],
  ]);
});

it('computing the status of many objects takes linear time', () => {
  const largeSize = sized({ short: 100, full: 1_000 });
  const set = (gateways: number) => {
    const objects = Array.from({ length: gateways }, (_, index) =>
      gateway(plain, '', `front-${index}`).concat(
        ...Array.from({ length: 5 }, (__, nth) =>
          document('HTTPRoute', `r-${index}-${nth}`, `{parentRefs: [{name: front-${index}}], ${toCart}}`),
        ),
      ),
    );
    return setOf(objects.join('') + cart);
  };
  // Measures CPU time of this thread, whose clock may have a resolution of four milliseconds.
  const timeOf = (objects: ReturnType<typeof set>): number => {
    const began = process.threadCpuUsage();
    for (let times = 1; ; times++) {
      runToEnd(computeGatewayApiStatusInSteps(objects, 'cluster.local'));
      const { user, system } = process.threadCpuUsage(began);
      if (user + system > 100_000) return (user + system) / times;
    }
  };
  const [fewTime, all] = [timeOf(set(largeSize / 10)), timeOf(set(largeSize))];
  // Ten times as many objects must take about ten times as long, not a hundred times.
  expect(all / fewTime).toBeLessThan(40);
});
