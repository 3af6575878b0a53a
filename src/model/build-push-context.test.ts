import { describe, expect, it } from 'vitest';
import { type GivenOptions, givenMesh, givenProxy } from './given-mesh.ts';
import type { PushContext } from './push-context.ts';
import type { Service } from './service.ts';

const object = (kind: string, id: string, spec: string): string => {
  const [namespace, name] = id.split('/');
  return `---\napiVersion: networking.istio.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: ${spec}\n`;
};

const service = (id: string, host: string, more = ''): string =>
  object(
    'ServiceEntry',
    id,
    `{hosts: [${host}], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}]${more}}`,
  );

const rule = (id: string, host: string, more = ''): string => object('DestinationRule', id, `{host: ${host}${more}}`);

const route = (id: string, host: string, more = ''): string =>
  object('VirtualService', id, `{hosts: [${host}], http: [{route: [{destination: {host: reviews}}]}]${more}}`);

function contextOf(yaml: string, options?: GivenOptions): PushContext {
  return givenMesh(yaml, options).context;
}

function serviceOf(context: PushContext, host: string, namespace: string): Service {
  const found = context.servicesOf(host, namespace)[0];
  if (found === undefined) throw new Error(`no service ${host} in ${namespace}`);
  return found;
}

describe('services in a push context', () => {
  const context = contextOf(
    service('a/all', 'all.b') +
      service('a/own', 'own.b', ', exportTo: ["."]') +
      service('a/friend', 'friend.b', ', exportTo: [b]') +
      service('a/nobody', 'nobody.b', ', exportTo: ["~"]'),
  );

  it.each([
    ['a', ['all.b', 'own.b']],
    ['b', ['all.b', 'friend.b']],
    ['c', ['all.b']],
  ])('are visible to namespace %s as exportTo says', (namespace, hosts) => {
    expect(context.servicesVisibleTo(namespace).map(({ hostname }) => hostname)).toEqual(hosts);
  });

  it("mean, by name, the client's namespace's first, else the oldest visible", () => {
    const shared = contextOf(
      service('a/s', 'x.b') + service('b/s', 'x.b') + service('c/s', 'x.b', ', exportTo: ["."]'),
    );
    const meaning = (namespace: string): string | undefined => shared.serviceFor('x.b', namespace)?.namespace;
    expect([meaning('a'), meaning('b'), meaning('c'), meaning('d')]).toEqual(['a', 'b', 'c', 'a']);
  });

  it('are exported as the mesh says when they do not say it', () => {
    const closed = contextOf(service('a/s', 'x.b'), { meshConfig: 'defaultServiceExportTo: ["."]' });
    expect(closed.servicesVisibleTo('b')).toEqual([]);
    expect(closed.servicesVisibleTo('a')).toHaveLength(1);
  });
});

describe('the destination rule of a service', () => {
  const names = (context: PushContext, client: string, host: string, namespace: string, labels = {}): string[] =>
    (context.destinationRuleFor(client, serviceOf(context, host, namespace), labels)?.origins ?? []).map(
      (key) => `${key.namespace}/${key.name}`,
    );

  it("is the client namespace's, else the service namespace's, else the root namespace's", () => {
    const all =
      service('svc/s', 'x.b') + rule('client/c', 'x.b') + rule('svc/s', 'x.b') + rule('istio-system/r', 'x.b');
    const context = contextOf(all);
    expect(names(context, 'client', 'x.b', 'svc')).toEqual(['client/c']);
    expect(names(context, 'other', 'x.b', 'svc')).toEqual(['svc/s']);
    expect(names(contextOf(all.replace(rule('svc/s', 'x.b'), '')), 'other', 'x.b', 'svc')).toEqual(['istio-system/r']);
  });

  it("of a client in the root namespace is the service namespace's before the mesh-wide default", () => {
    const context = contextOf(service('svc/s', 'x.b') + rule('istio-system/r', 'x.b') + rule('svc/s', 'x.b'));
    expect(names(context, 'istio-system', 'x.b', 'svc')).toEqual(['svc/s']);
    const private_ = contextOf(
      service('svc/s', 'x.b') + rule('istio-system/r', 'x.b', ', exportTo: ["."]') + rule('svc/s', 'x.b'),
    );
    expect(names(private_, 'istio-system', 'x.b', 'svc')).toEqual(['istio-system/r']);
  });

  it('is the most specific', () => {
    const context = contextOf(service('a/s', 'x.y.b') + rule('a/wide', '"*.b"') + rule('a/mid', '"*.y.b"'));
    expect(names(context, 'a', 'x.y.b', 'a')).toEqual(['a/mid']);
  });

  it('respects exportTo', () => {
    const context = contextOf(service('a/s', 'x.b') + rule('a/s', 'x.b', ', exportTo: ["."]'));
    expect(names(context, 'a', 'x.b', 'a')).toEqual(['a/s']);
    expect(names(context, 'b', 'x.b', 'a')).toEqual([]);
  });

  it('is the one that selects the workload before any other of the namespace', () => {
    const context = contextOf(
      service('a/s', 'x.b') +
        rule('a/all', 'x.b') +
        rule('a/some', 'x.b', ', workloadSelector: {matchLabels: {app: web}}'),
    );
    expect(names(context, 'a', 'x.b', 'a', { app: 'web' })).toEqual(['a/some']);
    expect(names(context, 'a', 'x.b', 'a', { app: 'db' })).toEqual(['a/all']);
    expect(names(context, 'b', 'x.b', 'a', { app: 'web' })).toEqual(['a/all']);
  });

  it('is made of all for the host: subsets add up, the first policy holds', () => {
    const context = contextOf(
      service('a/s', 'reviews.a.svc.cluster.local') +
        rule('a/one', 'reviews', ', subsets: [{name: v1, labels: {v: "1"}}]') +
        rule(
          'a/two',
          'reviews.a.svc.cluster.local',
          ', trafficPolicy: {tls: {mode: DISABLE}}, subsets: [{name: v1, labels: {v: other}}, {name: v2}]',
        ) +
        rule('a/three', 'reviews', ', trafficPolicy: {tls: {mode: SIMPLE}}'),
    );
    const merged = context.destinationRuleFor('a', serviceOf(context, 'reviews.a.svc.cluster.local', 'a'));
    expect(merged?.config.name).toBe('one');
    expect(merged?.origins.map(({ name }) => name)).toEqual(['one', 'two', 'three']);
    expect(merged?.config.spec).toEqual({
      host: 'reviews.a.svc.cluster.local',
      subsets: [{ name: 'v1', labels: { v: '1' } }, { name: 'v2' }],
      trafficPolicy: { tls: { mode: 'DISABLE' } },
    });
    expect(context.destinationRuleFor('b', serviceOf(context, 'reviews.a.svc.cluster.local', 'a'))).toBe(merged);
  });
});

describe('virtual services in a push context', () => {
  it('are found by gateway and by who sees them, names made absolute', () => {
    const context = contextOf(
      route('a/mesh', 'reviews') +
        route('a/both', 'x.b', ', gateways: [mesh, gw]') +
        route('b/theirs', 'y.b', ', gateways: [a/gw], exportTo: ["."]'),
    );
    const names = (gateway: string, namespace: string): string[] =>
      context.virtualServicesFor(gateway, namespace).map(({ config }) => config.name);
    expect(names('mesh', 'z')).toEqual(['mesh', 'both']);
    expect(names('a/gw', 'z')).toEqual(['both']);
    expect(names('a/gw', 'b')).toEqual(['both', 'theirs']);
    const [first] = context.virtualServicesFor('mesh', 'z');
    expect(first?.config.spec).toMatchObject({
      hosts: ['reviews.a.svc.cluster.local'],
      gateways: ['mesh'],
      http: [{ route: [{ destination: { host: 'reviews.a.svc.cluster.local' } }] }],
    });
  });

  it('have the routes of their delegates, and say that they are made of them', () => {
    const root = object(
      'VirtualService',
      'a/root',
      '{hosts: [x.b], http: [{match: [{uri: {prefix: /api}}], delegate: {name: leaf, namespace: b}}, {delegate: {name: gone}}]}',
    );
    const leaf = object(
      'VirtualService',
      'b/leaf',
      '{http: [{match: [{uri: {prefix: /api/v1}}], route: [{destination: {host: svc}}]}]}',
    );
    const context = contextOf(root + leaf);
    const [resolved, ...others] = context.virtualServicesFor('mesh', 'z');
    expect(others).toEqual([]);
    expect(resolved?.config.spec.http).toEqual([
      { match: [{ uri: { prefix: '/api/v1' } }], route: [{ destination: { host: 'svc.b.svc.cluster.local' } }] },
    ]);
    expect(resolved?.origins.map(({ namespace, name }) => `${namespace}/${name}`)).toEqual([
      'a/root',
      'b/leaf',
      'a/gone',
    ]);
  });

  it('take nothing from a delegate that is not exported to them', () => {
    const root = object('VirtualService', 'a/root', '{hosts: [x.b], http: [{delegate: {name: leaf, namespace: b}}]}');
    const leaf = object('VirtualService', 'b/leaf', '{exportTo: ["."], http: [{route: [{destination: {host: svc}}]}]}');
    expect(contextOf(root + leaf).virtualServicesFor('mesh', 'a')[0]?.config.spec.http).toEqual([]);
  });
});

describe('gateways of a proxy', () => {
  const server = 'servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]';
  const context = contextOf(
    object('Gateway', 'a/one', `{selector: {istio: ingress}, ${server}}`) +
      object('Gateway', 'b/two', `{selector: {istio: egress}, ${server}}`) +
      object('Gateway', 'c/all', `{${server}}`),
  );

  it('are those whose selector its labels fulfil, of any namespace', () => {
    const router = givenProxy({ type: 'router', labels: { istio: 'ingress', app: 'x' } });
    expect(context.gatewaysFor(router).map(({ name }) => name)).toEqual(['one', 'all']);
  });

  it('are none for a sidecar', () => {
    expect(context.gatewaysFor(givenProxy({ labels: { istio: 'ingress' } }))).toEqual([]);
  });
});

describe('service targets of a proxy', () => {
  it('are found by its addresses among the endpoints', () => {
    const context = contextOf(
      object(
        'ServiceEntry',
        'a/s',
        '{hosts: [x.b, y.b], resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.0.0.1, ports: {http: 8080}}, {address: 10.0.0.2}]}',
      ),
    );
    const targets = context.serviceTargetsOf(givenProxy({ ip: '10.0.0.1' }));
    expect(targets.map(({ service: { hostname }, port, targetPort }) => [hostname, port.number, targetPort])).toEqual([
      ['x.b', 80, 8080],
      ['y.b', 80, 8080],
    ]);
    expect(context.serviceTargetsOf(givenProxy({ ip: '10.0.0.3' }))).toEqual([]);
  });

  it('are found by its labels where a ServiceEntry of its namespace selects them', () => {
    const context = contextOf(
      object(
        'ServiceEntry',
        'a/s',
        '{hosts: [x.b], resolution: STATIC, workloadSelector: {labels: {app: web}}, ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]}',
      ),
    );
    expect(context.serviceTargetsOf(givenProxy({ namespace: 'a', labels: { app: 'web' } }))).toMatchObject([
      { targetPort: 8080 },
    ]);
    expect(context.serviceTargetsOf(givenProxy({ namespace: 'b', labels: { app: 'web' } }))).toEqual([]);
  });
});

describe('a push context built from the one before', () => {
  const base = service('a/s', 'x.b') + route('a/v', 'x.b') + rule('a/r', 'x.b');

  it('takes over what did not change and indexes what did', () => {
    const before = givenMesh(base);
    const proxy = givenProxy();
    const scopeBefore = before.context.sidecarScopeFor(proxy);
    const changed = [{ kind: 'Gateway', namespace: 'a', name: 'g' }];
    const server = 'servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]';
    const after = givenMesh(base + object('Gateway', 'a/g', `{${server}}`), { previous: { ...before, changed } });
    expect(after.context.sidecarScopeFor(proxy)).toBe(scopeBefore);
    expect(after.context.gatewaysFor(givenProxy({ type: 'router' })).map(({ name }) => name)).toEqual(['g']);
  });

  it('makes scopes again when what they are made of changed', () => {
    const before = givenMesh(base);
    const changed = [{ kind: 'VirtualService', namespace: 'a', name: 'w' }];
    const after = givenMesh(base + route('a/w', 'z.b'), { previous: { ...before, changed } });
    const names = (context: PushContext): string[] =>
      context.sidecarScopeFor(givenProxy()).egressListeners[0]!.virtualServices.map(({ config }) => config.name);
    expect(names(before.context)).toEqual(['v']);
    expect(names(after.context)).toEqual(['v', 'w']);
  });

  it('indexes everything when the mesh configuration is another', () => {
    const before = givenMesh(base);
    const after = givenMesh(base, {
      meshConfig: 'outboundTrafficPolicy: {mode: REGISTRY_ONLY}',
      previous: { ...before, changed: [] },
    });
    expect(after.context.sidecarScopeFor(givenProxy()).outboundTrafficPolicy).toEqual({ mode: 'REGISTRY_ONLY' });
  });
});
