/** Tests many valid routes of one tenant, and sizes of real meshes that the limit must not affect. */
import { describe, expect, it } from 'vitest';
import { document, service, setOf } from '../../../../test/fixtures/given-objects.ts';
import { runToEnd } from '../../../runtime/turns.ts';
import type { Config } from '../../config/config.ts';
import { maxAttachedMatches } from '../../kinds/object-limits.ts';
import type { RouteDestination, VirtualService } from '../../kinds/virtual-service/virtual-service.ts';
import { noDestination } from './backends.ts';
import { computeGatewayApiStatusInSteps } from './gateway-api-status.ts';
import { translateGatewayApi } from './translate.ts';

const list = (size: number, build: (index: number) => string, separator = ''): string =>
  Array.from({ length: size }, (_, index) => build(index)).join(separator);

const gateway = (size: number, listener = 'protocol: HTTP', namespace = 'shop'): string => {
  const one = (i: number): string =>
    `{name: l${i}, port: ${9000 + i}, ${listener}, allowedRoutes: {namespaces: {from: All}}}`;
  return document('Gateway', 'front', `{gatewayClassName: istio, listeners: [${list(size, one, ', ')}]}`, {
    namespace,
  });
};

interface GivenRoute {
  readonly kind?: string;
  readonly namespace?: string;
  readonly created?: string;
  readonly parents?: string;
  readonly more?: string;
  readonly matches?: number;
}

const toFront = '{name: front, namespace: shop}';
const route = (name: string, { kind = 'HTTPRoute', parents = toFront, ...fields }: GivenRoute): string => {
  const { namespace = 'mallory', created = '', more = '', matches = 0 } = fields;
  const match = (i: number): string =>
    kind === 'GRPCRoute' ? `{method: {service: a.${name}, method: m${i}}}` : `{path: {value: /${name}/${i}}}`;
  const rule = (first: number): string =>
    `{matches: [${list(8, (i) => match(first * 8 + i), ', ')}], backendRefs: [{name: cart, port: 80}]}`;
  const rules = matches === 0 ? '{backendRefs: [{name: cart, port: 80}]}' : list(matches / 8, rule, ', ');
  return document(kind, name, `{parentRefs: [${parents}], ${more}rules: [${rules}]}`, { namespace, created });
};

const translate = (yaml: string) => {
  const { objects, problems, beyondLimit } = translateGatewayApi(setOf(yaml), 'cluster.local');
  const messages = [...problems.values()].map(({ object, field, message }) => `${object} ${field}: ${message}`);
  const virtualServices = [...objects.values()].filter(
    (one): one is Config<VirtualService> => one.kind === 'VirtualService',
  );
  const isNowhere = ({ route = [] }: { readonly route?: readonly RouteDestination[] }): boolean =>
    route[0]!.destination.host === noDestination.host;
  const counts = { matches: 0, closed: 0 };
  const count = (isClosed: boolean, matches = 1): void => {
    counts[isClosed ? 'closed' : 'matches'] += matches;
  };
  for (const { spec } of virtualServices) {
    for (const http of spec.http ?? []) count(http.directResponse?.status === 503);
    for (const tls of spec.tls ?? []) count(isNowhere(tls), tls.match[0]!.sniHosts.length);
    for (const tcp of spec.tcp ?? []) count(isNowhere(tcp));
  }
  return { virtualServices, told: messages, beyondLimit, ...counts };
};

const acceptedOf = (yaml: string, key: string) => {
  const { HTTPRoute } = runToEnd(computeGatewayApiStatusInSteps(setOf(yaml), 'cluster.local'));
  return HTTPRoute.get(key)!.parents.map(({ conditions }) => conditions.find(({ type }) => type === 'Accepted'));
};

const cart = service('cart', 'mallory');
/** Each route has 2,048 translated matches at 16 listeners, so 16 routes are within the limit. */
const largeRoutes = (size: number, fields: GivenRoute = {}): string[] =>
  Array.from({ length: size }, (_, i) => route(`r${String(i).padStart(2, '0')}`, { matches: 128, ...fields }));

describe('routes from one namespace at a Gateway with many listeners', () => {
  it.each(['HTTPRoute', 'GRPCRoute'])(
    'respond with 503 above the limit, and are not attached above twice the limit: %ss',
    (kind) => {
      const {
        matches,
        closed,
        told: messages,
        beyondLimit,
      } = translate(gateway(16) + cart + largeRoutes(40, { kind }).join(''));
      expect([matches, closed]).toEqual([maxAttachedMatches, maxAttachedMatches]);
      expect(messages.map((text) => /503|not attached/.exec(text)![0])).toEqual([
        ...Array.from({ length: 16 }, () => '503'),
        ...Array.from({ length: 8 }, () => 'not attached'),
      ]);
      expect(messages).toHaveLength(24);
      expect(beyondLimit).toBe(24);
    },
  );

  it('are reported in log and status with count, limit and remedy', () => {
    const yaml = gateway(16) + cart + largeRoutes(17).join('');
    const message =
      'requests for the route get 503: it has 2048 translated matches (matches x hosts x listeners, each counted once for each ' +
      'kB), and the limit for all routes of namespace mallory at Gateways of namespace shop is 32768 (LIMIT_EXCEEDED): reduce matches, ' +
      'hostnames or headers, or select a listener with sectionName';
    expect(translate(yaml).told).toEqual([`HTTPRoute mallory/r16 spec.parentRefs[0]: ${message}`]);
    expect(acceptedOf(yaml, 'mallory/r15')).toMatchObject([{ status: 'True', reason: 'Accepted' }]);
    expect(acceptedOf(yaml, 'mallory/r16')).toEqual([
      { type: 'Accepted', status: 'False', reason: 'LimitExceeded', message },
    ]);
    const { KubernetesGateway } = runToEnd(computeGatewayApiStatusInSteps(setOf(yaml), 'cluster.local'));
    expect(KubernetesGateway.get('shop/front')!.listeners[0]!.attachedRoutes).toBe(16);
  });

  it('respond to their requests with 503 above the limit, so that the requests match no wider route of an older object', () => {
    const wildcardRoute = route('wide', { created: '1969-01-01T00:00:00Z' });
    const { virtualServices } = translate(gateway(16) + cart + wildcardRoute + largeRoutes(16).join(''));
    const routesFor = (uri: string) =>
      virtualServices[0]!.spec.http!.filter(({ match = [] }) => JSON.stringify(match).includes(uri));
    expect(routesFor('"/r14/127"')).toMatchObject([
      { route: [{ destination: { host: 'cart.mallory.svc.cluster.local' } }] },
    ]);
    expect(routesFor('"/r15/127"')).toMatchObject([{ directResponse: { status: 503 } }]);
    expect(routesFor('"/r15/127"')[0]).not.toHaveProperty('route');
  });

  it('count once per kB, because filters are repeated for each match, host and listener', () => {
    const value = 'x'.repeat(4_000);
    const set = `[${list(9, (i) => `{name: h${i}, value: ${value}}`, ', ')}]`;
    const filters = `filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: ${set}}}]`;
    const withHeaders = (name: string): string =>
      route(name, { matches: 64 }).replaceAll('backendRefs: [', `${filters}, backendRefs: [`);
    // 64 matches x 16 listeners x 36 kB are 1,024 routes of 36 units.
    const {
      told: messages,
      matches,
      closed,
    } = translate(gateway(16) + cart + withHeaders('large') + route('small', { matches: 8 }));
    expect([matches, closed]).toEqual([8 * 16, 64 * 16]);
    expect(messages).toEqual([expect.stringMatching(/^HTTPRoute mallory\/large .* has 36864 translated matches/)]);
  });

  it('remain attached if they are the oldest, regardless of the order of arrival', () => {
    const oldRoute = route('zz', { matches: 128, created: '1969-01-01T00:00:00Z' });
    const routes = [...largeRoutes(16), oldRoute];
    for (const order of [routes, routes.toReversed()]) {
      const { told: messages } = translate(gateway(16) + cart + order.join(''));
      expect(messages).toEqual([expect.stringContaining('HTTPRoute mallory/r15 spec.parentRefs[0]')]);
    }
  });

  it('remain attached if they are small, even if a large route exceeds the limit', () => {
    const huge = route('huge', { matches: 128, more: `hostnames: [${list(16, (i) => `h${i}.test`, ', ')}], ` });
    const { told: messages, matches, closed } = translate(gateway(17) + cart + huge + route('small', { matches: 8 }));
    expect(messages).toEqual([expect.stringContaining('HTTPRoute mallory/huge')]);
    // The route has more matches than may respond with 503.
    expect([matches, closed]).toEqual([8 * 17, 0]);
  });

  it('do not use the share of another namespace or of Gateways in other namespaces', () => {
    const yaml =
      gateway(16) +
      gateway(1, 'protocol: HTTP', 'bank') +
      cart +
      service('cart', 'bank') +
      largeRoutes(17, { parents: `${toFront}, {name: front, namespace: bank}` }).join('') +
      route('pay', { namespace: 'bank', matches: 8, created: '2026-01-01T00:00:00Z' });
    expect(translate(yaml).told).toEqual([expect.stringContaining('HTTPRoute mallory/r16 spec.parentRefs[0]')]);
    expect(acceptedOf(yaml, 'mallory/r16')).toMatchObject([{ reason: 'LimitExceeded' }, { reason: 'Accepted' }]);
    expect(acceptedOf(yaml, 'bank/pay')).toMatchObject([{ reason: 'Accepted' }]);
  });

  it('count towards the limit even at a Gateway whose status another revision writes', () => {
    const other = gateway(16).replaceAll('front', 'other');
    const bothParents = `${toFront}, {name: other, namespace: shop}`;
    const yaml = gateway(16) + other + cart + largeRoutes(9, { parents: bothParents }).join('');
    expect(translate(yaml).beyondLimit).toBe(1);
    const { HTTPRoute } = runToEnd(
      computeGatewayApiStatusInSteps(setOf(yaml), 'cluster.local', ({ name }) => name === 'other'),
    );
    expect(HTTPRoute.get('mallory/r08')!.parents).toMatchObject([
      { parentRef: { name: 'front' }, conditions: [{ type: 'Accepted', reason: 'LimitExceeded' }, {}] },
    ]);
  });

  it('are not limited at 1,000 routes with 8 matches each at two listeners', () => {
    const {
      told: messages,
      matches,
      beyondLimit,
    } = translate(gateway(2) + cart + list(1_000, (i) => route(`r${i}`, { matches: 8 })));
    expect({ told: messages, matches, beyondLimit }).toEqual({ told: [], matches: 16_000, beyondLimit: 0 });
  });

  it('share one translation for all listeners unless a redirect depends on the port', () => {
    const routes = (yaml: string) =>
      translate(gateway(3) + cart + yaml).virtualServices.map(({ spec }) => spec.http![0]);
    const plain = routes(route('r', {}));
    expect(plain).toHaveLength(3);
    expect(new Set(plain).size).toBe(1);
    const redirect =
      'filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplaceFullPath, replaceFullPath: /x}}}]';
    const redirects = routes(route('r', {}).replace('backendRefs: [{name: cart, port: 80}]', redirect));
    expect(redirects.map((one) => one?.redirect?.port)).toEqual([9000, 9001, 9002]);
  });
});

describe('TLSRoutes and TCPRoutes', () => {
  it('count with each hostname at each listener (TLSRoute)', () => {
    const hostnames = (r: number): string => `hostnames: [${list(16, (i) => `h${i}.r${r}.test`, ', ')}], `;
    const routes = list(40, (i) => route(`r${i}`, { kind: 'TLSRoute', more: hostnames(i) }));
    const {
      told: _,
      virtualServices: __,
      ...counts
    } = translate(gateway(64, 'protocol: TLS, tls: {mode: Passthrough}') + cart + routes);
    expect(counts).toEqual({ matches: maxAttachedMatches, closed: 8 * 16 * 64, beyondLimit: 8 });
  });

  it('count once at each listener (TCPRoute)', () => {
    const routes = list(520, (i) => route(`r${i}`, { kind: 'TCPRoute' }));
    const { matches, beyondLimit } = translate(gateway(64, 'protocol: TCP') + cart + routes);
    // Only the oldest of several TCPRoutes receives the connections of a listener.
    expect({ matches, beyondLimit }).toEqual({ matches: 64, beyondLimit: 8 });
  });

  it('share the limit with HTTPRoutes', () => {
    const tcp = '{name: raw, port: 1, protocol: TCP, allowedRoutes: {namespaces: {from: All}}}';
    const gatewayWithTcp = gateway(16).replace('listeners: [', `listeners: [${tcp}, `);
    const yaml = gatewayWithTcp + cart + largeRoutes(16).join('') + route('tcp', { kind: 'TCPRoute' });
    expect(translate(yaml).told).toEqual([expect.stringContaining('TCPRoute mallory/tcp spec.parentRefs[0]')]);
  });
});

it('routes of Services respond with 503 at all these Services above the limit', () => {
  const parents = list(16, (i) => `{group: "", kind: Service, name: s${i}, namespace: bank}`, ', ');
  const services = list(16, (i) => service(`s${i}`, 'bank'));
  const {
    told: messages,
    beyondLimit,
    matches,
    closed,
  } = translate(services + cart + largeRoutes(17, { parents }).join(''));
  expect([matches, closed]).toEqual([maxAttachedMatches, 128 * 16]);
  expect(beyondLimit).toBe(1);
  expect(messages[0]).toContain('the limit for all routes of namespace mallory at Services is 32768');
});
