/** Tests that a careless or hostile route owner cannot affect other routes or the permissions of Gateways. */
import { describe, expect, it } from 'vitest';
import { document, service, setOf, translated } from '../../../../test/fixtures/given-objects.ts';
import { runToEnd } from '../../../runtime/turns.ts';
import { computeGatewayApiStatusInSteps } from './gateway-api-status.ts';

const allNamespaces = 'allowedRoutes: {namespaces: {from: All}}';
const passthrough = `{name: l, port: 9000, protocol: TLS, tls: {mode: Passthrough}, ${allNamespaces}}`;
const gateway = (listeners: string): string =>
  document('Gateway', 'front', `{gatewayClassName: istio, listeners: [${listeners}]}`);
const route = (
  kind: string,
  name: string,
  namespace: string,
  extraSpec = '',
  section = '',
  creationTime = '',
): string =>
  document(
    kind,
    name,
    `{parentRefs: [{name: front, namespace: shop${section && `, sectionName: ${section}`}}], ${extraSpec}rules: [{backendRefs: [{name: cart, port: 80}]}]}`,
    { namespace, created: creationTime },
  );
const services = service('cart') + service('cart', 'a') + service('cart', 'a-b');
const hostsOf = (yaml: string): readonly (readonly string[])[] =>
  translated(yaml).virtualServices.map(({ spec }) => spec.hosts);

describe('a route with colliding names', () => {
  it('does not replace another route whose namespace and name concatenate to the same text', () => {
    const yaml =
      gateway(passthrough) +
      services +
      route('TLSRoute', 'c', 'a-b', 'hostnames: [victim.test], ') +
      route('TLSRoute', 'b-c', 'a', 'hostnames: [other.test], ');
    expect(hostsOf(yaml).flat().sort()).toEqual(['other.test', 'victim.test']);
  });

  it('does not replace another route whose listener and hostname concatenate to the same text', () => {
    const listeners = ['web', 'web-admin'].map(
      (name, i) => `{name: ${name}, port: ${80 + i}, protocol: HTTP, ${allNamespaces}}`,
    );
    const yaml =
      gateway(listeners.join()) +
      services +
      route('HTTPRoute', 'victim', 'a-b', 'hostnames: [x.test], ', 'web-admin') +
      route('HTTPRoute', 'other', 'a', 'hostnames: [admin-x.test], ', 'web');
    expect(hostsOf(yaml)).toEqual([['admin-x.test'], ['x.test']]);
  });

  it('does not replace another route of a Service in a namespace with the suffix of generated names', () => {
    const serviceRoute = (kind: string, namespace: string): string =>
      document(
        kind,
        'r',
        `{parentRefs: [{group: "", kind: Service, name: cart, namespace: ${namespace}}], rules: [{backendRefs: [{name: cart, port: 80}]}]}`,
        { namespace: 'a' },
      );
    const yaml =
      services + service('cart', 'shop-tcp') + serviceRoute('TCPRoute', 'shop') + serviceRoute('HTTPRoute', 'shop-tcp');
    expect(hostsOf(yaml)).toEqual([['cart.shop-tcp.svc.cluster.local'], ['cart.shop.svc.cluster.local']]);
  });
});

describe('a backend of kind Hostname', () => {
  const tcp = gateway(`{name: l, port: 9000, protocol: TCP, ${allNamespaces}}`) + service('cart');
  const to = (name: string, parentFields = ''): string =>
    document(
      'TCPRoute',
      'r',
      `{parentRefs: [{name: front, namespace: shop}], rules: [{backendRefs: [{group: networking.istio.io, kind: Hostname, name: ${name}, port: 80${parentFields}}]}]}`,
      { namespace: 'a' },
    );
  const grant = document(
    'ReferenceGrant',
    'g',
    '{from: [{group: gateway.networking.k8s.io, kind: TCPRoute, namespace: a}], to: [{group: "", kind: Service, name: cart}]}',
  );
  const hostOf = (yaml: string): string =>
    translated(yaml).virtualServices[0]!.spec.tcp![0]!.route![0]!.destination.host;

  it('requires the same grant as a Service if it names a Service of another namespace', () => {
    const yaml = tcp + to('cart.shop.svc.cluster.local');
    expect(hostOf(yaml)).toBe('no-backend.invalid');
    expect(translated(yaml).messages).toEqual([
      expect.stringContaining('no ReferenceGrant in namespace shop allows TCPRoutes of namespace a'),
    ]);
    expect(hostOf(yaml + grant)).toBe('cart.shop.svc.cluster.local');
    expect(hostOf(tcp + to('cart.a.svc.cluster.local'))).toBe('cart.a.svc.cluster.local');
    expect(hostOf(tcp + to('example.com'))).toBe('example.com');
  });

  it("is resolved in the route's namespace, not the Gateway's, if it has no dot", () => {
    expect(hostOf(tcp + to('cart'))).toBe('cart.a.svc.cluster.local');
  });
});

describe('several routes for the same connections', () => {
  const destinationOf = (yaml: string): string => {
    const [first] = translated(yaml).virtualServices.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    return first!.spec.tcp![0]!.route![0]!.destination.host;
  };

  it('are ordered at a TCP listener by age, namespace and name, regardless of the order of arrival', () => {
    const tcp = gateway(`{name: l, port: 9000, protocol: TCP, ${allNamespaces}}`) + services;
    const routes = [route('TCPRoute', 'z', 'a-b'), route('TCPRoute', 'a', 'a'), route('TCPRoute', 'b', 'shop')];
    for (const order of [routes, routes.toReversed()]) {
      expect(hostsOf(tcp + order.join(''))).toHaveLength(1);
      expect(destinationOf(tcp + order.join(''))).toBe('cart.a-b.svc.cluster.local');
    }
    const oldRoute = route('TCPRoute', 'zz', 'shop', '', '', '1969-01-01T00:00:00Z');
    expect(destinationOf(tcp + routes.join('') + oldRoute)).toBe('cart.shop.svc.cluster.local');
  });

  it('have their errors reported even if they receive no connections', () => {
    const tcp = gateway(`{name: l, port: 9000, protocol: TCP, ${allNamespaces}}`);
    expect(translated(tcp + route('TCPRoute', 'a', 'a') + route('TCPRoute', 'b', 'a')).messages).toEqual([
      expect.stringContaining(
        'TCPRoute a/b spec.parentRefs: TCPRoute a/a handles every connection at listener l: it is older, or first by name',
      ),
      expect.stringContaining('TCPRoute a/a spec.rules[0].backendRefs[0]: there is no Service'),
      expect.stringContaining('TCPRoute a/b spec.rules[0].backendRefs[0]: there is no Service'),
    ]);
  });

  it('are each reported once if an older TLSRoute has the same name', () => {
    const of = (name: string, hostnames: string): string => route('TLSRoute', name, 'a', `hostnames: ${hostnames}, `);
    const yaml = gateway(passthrough) + service('cart', 'a') + of('a', '[x.test]') + of('b', '[y.test, x.test]');
    expect(translated(yaml + of('c', '[z.test]')).messages).toEqual([
      expect.stringMatching(
        /TLSRoute a\/b spec.hostnames: TLSRoute a\/a handles connections to x.test at listener \w+:/,
      ),
    ]);
  });

  it('generate 64 objects for 1,000 TCPRoutes at 64 listeners', () => {
    const listeners = Array.from({ length: 64 }, (_, i) => `{name: l${i}, port: ${9000 + i}, protocol: TCP}`);
    const routes = Array.from({ length: 1000 }, (_, i) => route('TCPRoute', `r${i}`, 'shop'));
    expect(hostsOf(gateway(listeners.join()) + services + routes.join(''))).toHaveLength(64);
  });
});

it('a listener that selects namespaces without a selector permits no routes', () => {
  const listener = `{name: l, port: 9000, protocol: TCP, allowedRoutes: {namespaces: {from: Selector}}}`;
  expect(hostsOf(gateway(listener) + services + route('TCPRoute', 'r', 'a'))).toEqual([]);
  const emptySelector = listener.replace('Selector}', 'Selector, selector: {}}');
  expect(hostsOf(gateway(emptySelector) + services + route('TCPRoute', 'r', 'a'))).toHaveLength(1);
});

describe('the status of listeners that share a port', () => {
  const conditionsOf = (listeners: string): Record<string, string[]> => {
    const { KubernetesGateway } = runToEnd(computeGatewayApiStatusInSteps(setOf(gateway(listeners)), 'cluster.local'));
    return Object.fromEntries(
      KubernetesGateway.get('shop/front')!.listeners.map(({ name, conditions }) => [
        name,
        conditions.filter(({ type }) => type !== 'ResolvedRefs').map(({ status, reason }) => `${status} ${reason}`),
      ]),
    );
  };
  const conflictingConditions = (reason: string): string[] => [`False ${reason}`, 'False Invalid', `True ${reason}`];
  const usableConditions = ['True Accepted', 'True Programmed', 'False NoConflicts'];

  it('reports whether the HTTPS or TLS listener receives a shared hostname, as configured in Envoy', () => {
    const twoListeners = (hostname: string): string =>
      `{name: b, port: 443, protocol: HTTPS, hostname: x.test, tls: {certificateRefs: [{name: s}]}}, ` +
      `{name: a, port: 443, protocol: TLS, hostname: ${hostname}, tls: {mode: Passthrough}}`;
    expect(conditionsOf(twoListeners('x.test'))).toEqual({
      a: usableConditions,
      b: conflictingConditions('HostnameConflict'),
    });
    expect(conditionsOf(twoListeners('"*.test"'))).toMatchObject({
      a: usableConditions,
      b: ['True Accepted', 'False Invalid', 'False NoConflicts'],
    });
  });

  it('does not assign the port to an inactive listener', () => {
    const yaml = '{name: a, port: 443, protocol: HTTPS}, {name: b, port: 443, protocol: HTTP}';
    expect(conditionsOf(yaml)).toEqual({
      a: ['True Accepted', 'False Invalid', 'False NoConflicts'],
      b: usableConditions,
    });
  });
});

describe('an inactive listener with TLS', () => {
  const https = (name: string, hostname: string, tls: string, port = 443): string =>
    `{name: ${name}, port: ${port}, protocol: HTTPS, hostname: "${hostname}", tls: {${tls}}}`;
  const validTls = 'certificateRefs: [{name: web}]';
  const invalidTls = 'certificateRefs: [{name: web}], frontendValidation: {}';
  const wildcardListener = https('wide', '*.b.test', validTls);
  const toCart = document(
    'HTTPRoute',
    'r',
    '{parentRefs: [{name: front}], hostnames: [a.b.test, x.b.test], rules: [{backendRefs: [{name: cart, port: 80}]}]}',
  );
  const closedIn = (yaml: string): (string | undefined)[] =>
    translated(yaml).gateways.map(({ spec }) => spec.servers[0]!.closedReason?.slice(0, 27));

  it('closes its connections, so that these do not reach a less strict listener on the port', () => {
    const yaml = gateway(`${wildcardListener}, ${https('narrow', 'a.b.test', invalidTls)}`) + toCart + service('cart');
    expect(closedIn(yaml)).toEqual([undefined, 'the listener does not apply']);
    expect(translated(yaml).gateways[1]!.spec.servers[0]).toMatchObject({
      ...{ hosts: ['./a.b.test'], port: { number: 443, protocol: 'HTTPS' } },
    });
    // The route does not have the name a.b.test at either listener.
    expect(translated(yaml).virtualServices.flatMap(({ spec }) => spec.hosts)).toEqual(['x.b.test']);
    const { parents } = runToEnd(computeGatewayApiStatusInSteps(setOf(yaml), 'cluster.local')).HTTPRoute.get('shop/r')!;
    expect(parents[0]!.conditions[0]).toMatchObject({ type: 'Accepted', status: 'True' });
  });

  it.each([
    ['if no other listener uses the port', https('narrow', 'a.b.test', invalidTls)],
    [
      'if the others use another port',
      `${https('wide', '*.b.test', validTls, 444)}, ${https('narrow', 'a.b.test', invalidTls)}`,
    ],
    [
      'if another one has its name',
      `{name: through, port: 443, protocol: TLS, hostname: a.b.test, tls: {mode: Passthrough}}, ${https('narrow', 'a.b.test', invalidTls)}`,
    ],
    [
      'if the port is plaintext',
      `{name: plain, port: 443, protocol: HTTP}, ${https('narrow', 'a.b.test', invalidTls)}`,
    ],
  ])('does not affect other listeners %s', (_, listeners) => {
    expect(closedIn(gateway(listeners)).filter((closedStatus) => closedStatus !== undefined)).toEqual([]);
  });
});
