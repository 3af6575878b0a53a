import { describe, expect, it } from 'vitest';
import { type GivenNode, givenMesh, givenProxy } from '../../../test/fixtures/given-mesh.ts';
import type { SidecarScope } from './sidecar-scope.ts';

const object = (kind: string, id: string, spec: string): string => {
  const [namespace, name] = id.split('/');
  return `---\napiVersion: networking.istio.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: ${spec}\n`;
};

const ports = 'ports: [{number: 80, name: http, protocol: HTTP}, {number: 90, name: tcp, protocol: TCP}]';
const service = (id: string, host: string, extraSpec = ''): string =>
  object('ServiceEntry', id, `{hosts: [${host}], resolution: STATIC, ${ports}${extraSpec}}`);
const route = (id: string, host: string, destination: string): string =>
  object('VirtualService', id, `{hosts: [${host}], http: [{route: [{destination: {host: ${destination}}}]}]}`);

const mesh =
  service('shop/reviews', 'reviews.b') +
  service('shop/ratings', 'ratings.b') +
  service('pay/card', 'card.b') +
  service('pay/hidden', 'hidden.b', ', exportTo: ["."]') +
  route('shop/reviews', 'reviews.b', 'card.b') +
  route('pay/card', 'card.b', 'card.b');

function scopeOf(sidecars: string, node: GivenNode = { namespace: 'shop' }): SidecarScope {
  return givenMesh(mesh + sidecars).context.sidecarScopeFor(givenProxy(node));
}

const hosts = (services: SidecarScope['services']): string[] => services.map(({ hostname }) => hostname);

describe('the scope of a sidecar', () => {
  it('contains everything that is exported to its namespace if no Sidecar object applies', () => {
    const scope = scopeOf('');
    expect(hosts(scope.services)).toEqual(['reviews.b', 'ratings.b', 'card.b']);
    expect(scope.egressListeners).toHaveLength(1);
    expect(scope.egressListeners[0]).toMatchObject({ captureMode: 'DEFAULT' });
    expect(scope.egressListeners[0]?.virtualServices.map(({ config }) => config.name)).toEqual(['reviews', 'card']);
    expect(scope.outboundTrafficPolicy).toEqual({ mode: 'ALLOW_ANY' });
    expect(scope.sidecar).toBeUndefined();
  });

  it('uses the oldest Sidecar object that selects the workload, or else that of the namespace, or else of the root namespace', () => {
    const sidecars =
      object('Sidecar', 'istio-system/root', '{egress: [{hosts: ["*/*"]}]}') +
      object('Sidecar', 'shop/all', '{egress: [{hosts: ["./*"]}]}') +
      object('Sidecar', 'shop/web', '{workloadSelector: {labels: {app: web}}, egress: [{hosts: ["~/*"]}]}') +
      object('Sidecar', 'shop/web2', '{workloadSelector: {labels: {app: web}}, egress: [{hosts: ["*/*"]}]}');
    const sidecarNameFor = (node: GivenNode): string | undefined => scopeOf(sidecars, node).sidecar?.name;
    expect(sidecarNameFor({ namespace: 'shop', labels: { app: 'web' } })).toBe('web');
    expect(sidecarNameFor({ namespace: 'shop' })).toBe('all');
    expect(sidecarNameFor({ namespace: 'pay' })).toBe('root');
    expect(sidecarNameFor({ namespace: 'pay', type: 'router' })).toBeUndefined();
  });

  it.each([
    ['"./*"', ['reviews.b', 'ratings.b', 'card.b']],
    ['"./ratings.b"', ['ratings.b']],
    ['"pay/*"', ['card.b']],
    ['"*/card.b"', ['card.b']],
    ['"*/hidden.b"', []],
    ['"~/*"', []],
    // A virtual service of another namespace routes to card.b.
    ['"*/*", "~pay/*"', ['reviews.b', 'ratings.b', 'card.b']],
    ['"shop/ratings.b", "pay/*", "~pay/*"', ['ratings.b', 'card.b']],
    ['"*/*", "~./ratings.b"', ['reviews.b', 'card.b']],
    ['"*/*", "~/*.b"', ['card.b']],
    ['"*/*", "~other/*"', ['reviews.b', 'ratings.b', 'card.b']],
    ['"./ratings.b", "~shop/*"', []],
    ['"~shop/*"', []],
  ])('imports %s, and the destinations of imported virtual services', (imported, expected) => {
    expect(hosts(scopeOf(object('Sidecar', 'shop/s', `{egress: [{hosts: [${imported}]}]}`)).services)).toEqual(
      expected,
    );
  });

  it('resolves `.` to the namespace of the proxy, even in an object of the root namespace', () => {
    const scope = scopeOf(object('Sidecar', 'istio-system/s', '{egress: [{hosts: ["./*"]}]}'), { namespace: 'pay' });
    expect(hosts(scope.services)).toEqual(['card.b', 'hidden.b']);
  });

  it('selects virtual services by host, including wildcards that cover an imported host', () => {
    const scope = scopeOf(
      object('Sidecar', 'shop/s', '{egress: [{hosts: ["*/ratings.b"]}]}') + route('shop/wide', '"*.b"', 'reviews.b'),
    );
    expect(scope.egressListeners[0]?.virtualServices.map(({ config }) => config.name)).toEqual(['wide']);
    expect(hosts(scope.services)).toEqual(['reviews.b', 'ratings.b']);
  });

  it('contains services reduced to the ports of listeners, and merges the ports of several listeners', () => {
    const scope = scopeOf(
      object(
        'Sidecar',
        'shop/s',
        '{egress: [{port: {number: 80, name: a, protocol: HTTP}, bind: 127.0.0.1, captureMode: NONE, hosts: ["*/ratings.b"]}, {port: {number: 90, name: b, protocol: TCP}, hosts: ["*/ratings.b", "*/card.b"]}, {port: {number: 70, name: c, protocol: TCP}, hosts: ["*/*"]}]}',
      ),
    );
    const [first, second, third] = scope.egressListeners;
    expect(first).toMatchObject({ port: { number: 80 }, bind: '127.0.0.1', captureMode: 'NONE' });
    expect(first?.services.map(({ ports: visiblePorts }) => visiblePorts.map(({ number }) => number))).toEqual([[80]]);
    expect(hosts(second?.services ?? [])).toEqual(['ratings.b', 'card.b']);
    expect(third?.services).toEqual([]);
    expect(scope.services.map(({ hostname, ports: all }) => [hostname, all.map(({ number }) => number)])).toEqual([
      ['ratings.b', [80, 90]],
      ['card.b', [90]],
    ]);
  });

  it('contains everything for an HTTP proxy listener', () => {
    const scope = scopeOf(
      object('Sidecar', 'shop/s', '{egress: [{port: {number: 3128, name: p, protocol: HTTP_PROXY}, hosts: ["*/*"]}]}'),
    );
    expect(hosts(scope.egressListeners[0]?.services ?? [])).toEqual(['reviews.b', 'ratings.b', 'card.b']);
  });

  it("resolves a host of several namespaces to the sidecar's own namespace, or else to the oldest service", () => {
    const twoServices = service('other/reviews', 'reviews.b') + service('pay/ratings', 'ratings.b');
    const namespaceOf = (node: GivenNode, host: string): string | undefined =>
      scopeOf(twoServices, node).serviceByHostname(host)?.namespace;
    expect(namespaceOf({ namespace: 'shop' }, 'reviews.b')).toBe('shop');
    expect(namespaceOf({ namespace: 'other' }, 'reviews.b')).toBe('other');
    expect(namespaceOf({ namespace: 'third' }, 'reviews.b')).toBe('shop');
    expect(namespaceOf({ namespace: 'third' }, 'nothing.b')).toBeUndefined();
    expect(
      hosts(scopeOf(twoServices, { namespace: 'other' }).services).filter((host) => host === 'reviews.b'),
    ).toHaveLength(1);
  });

  it('contains the outbound traffic policy, ingress listeners and connection pool of the Sidecar object', () => {
    const scope = scopeOf(
      object(
        'Sidecar',
        'shop/s',
        '{outboundTrafficPolicy: {mode: ALLOW_ANY, egressProxy: {host: out, port: {number: 1}}}, inboundConnectionPool: {tcp: {maxConnections: 3}}, ingress: [{port: {number: 80, name: x, protocol: HTTP}}]}',
      ),
    );
    expect(scope.outboundTrafficPolicy.egressProxy).toEqual({
      host: 'out.shop.svc.cluster.local',
      port: { number: 1 },
    });
    expect(scope.inboundConnectionPool).toEqual({ tcp: { maxConnections: 3 } });
    expect(scope.ingressListeners).toHaveLength(1);
    expect(hosts(scope.services)).toEqual(['reviews.b', 'ratings.b', 'card.b']);
  });
});
