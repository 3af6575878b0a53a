import { describe, expect, it } from 'vitest';
import { givenMesh, givenShape } from '../../../test/fixtures/given-mesh.ts';
import type { RouteConfiguration } from '../../gen/envoy/config/route/v3/route_pb.ts';
import { type Memory, noMemory } from '../inputs/generator-memory.ts';
import { precomputeSidecarRoutes, sidecarRoutes } from './sidecar.ts';

function configuration(yaml: string, name: string, meshConfig = ''): RouteConfiguration {
  const { context } = givenMesh(yaml, { meshConfig });
  const shape = givenShape({ namespace: 'shop' });
  const resource = sidecarRoutes(name, shape, context);
  expect(resource.name).toBe(name);
  return resource.message as RouteConfiguration;
}

/** Returns `VIRTUAL HOST: CLUSTER` for each virtual host, with the cluster of its first route. */
function hosts({ virtualHosts }: RouteConfiguration): string[] {
  return virtualHosts.map(({ name, routes }) => {
    const action = routes[0]?.action;
    const cluster = action?.case === 'route' ? action.value.clusterSpecifier.value : action?.case;
    return `${name} → ${cluster}`;
  });
}

function service(host: string, ports = '[{ number: 80, name: http, protocol: HTTP }]'): string {
  return `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: { name: ${host.replaceAll(/[^a-z]/g, '-').replace(/^-+/, 'x')}, namespace: shop }
spec: { hosts: ["${host}"], location: MESH_INTERNAL, resolution: NONE, ports: ${ports} }
---`;
}

function virtualService(name: string, host: string, to: string): string {
  return `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: ${name}, namespace: shop }
spec: { hosts: ["${host}"], http: [{ route: [{ destination: { host: ${to} } }] }] }
---`;
}

describe('routes of a sidecar', () => {
  it("routes lead to the services of the port, and other requests go to the mesh's fallback cluster", () => {
    const mesh = service('a.test') + service('b.test', '[{ number: 81, name: http, protocol: HTTP }]');
    expect(hosts(configuration(mesh, '80'))).toEqual([
      'a.test:80 → outbound|80||a.test',
      'allow_any → PassthroughCluster',
    ]);
    expect(hosts(configuration(mesh, '80', 'outboundTrafficPolicy: { mode: REGISTRY_ONLY }'))).toContain(
      'block_all → directResponse',
    );
  });

  it('routes use the most specific VirtualService, then the oldest', () => {
    const mesh =
      service('a.test') +
      service('to.test') +
      virtualService('wide', '*.test', 'wide.test') +
      virtualService('first', 'a.test', 'to.test') +
      virtualService('second', 'a.test', 'never.test');
    expect(hosts(configuration(mesh, '80'))).toEqual([
      'a.test:80 → outbound|80||to.test',
      'to.test:80 → outbound|80||wide.test',
      'allow_any → PassthroughCluster',
    ]);
  });

  describe('VirtualService without a route for the client', () => {
    const serviceMatching = (name: string, host: string, match: string): string =>
      virtualService(name, host, 'never.test').replace('http: [{ ', `http: [{ match: [{ ${match} }], `);
    const theService = ['a.test:80 → outbound|80||a.test', 'allow_any → PassthroughCluster'];

    it.each([
      ['client label', 'a.test', 'sourceLabels: { app: canary }'],
      ['client namespace', 'a.test', 'sourceNamespace: blue'],
      ['port', 'a.test', 'port: 81'],
      ['gateway', 'a.test', 'gateways: [shop/gw]'],
      ['client label, with a wildcard host', '*.test', 'sourceLabels: { app: canary }'],
    ])('routes lead to the service if the VirtualService is for another %s', (_, host, match) => {
      const built = configuration(service('a.test') + serviceMatching('first', host, match), '80');
      expect(hosts(built)).toEqual(theService);
    });

    it('routes use the next VirtualService for the host, or else the next wildcard', () => {
      const none = serviceMatching('first', 'a.test', 'sourceNamespace: blue');
      const wildcardService = virtualService('wide', '*.test', 'wide.test');
      const mesh = service('a.test') + wildcardService + none;
      expect(hosts(configuration(mesh, '80'))[0]).toBe('a.test:80 → outbound|80||wide.test');
      const built = configuration(mesh + virtualService('second', 'a.test', 'to.test'), '80');
      expect(hosts(built)[0]).toBe('a.test:80 → outbound|80||to.test');
    });

    it('routes lead to the service if its protocol is detected', () => {
      const built = configuration(
        service('a.test') + serviceMatching('first', '*.test', 'sourceNamespace: blue'),
        'a.test:80',
      );
      expect(hosts(built)).toEqual(['a.test:80 → outbound|80||a.test']);
    });

    it('a host without a service gets no virtual host', () => {
      const built = configuration(
        service('a.test') + serviceMatching('new', 'new.test', 'sourceNamespace: blue'),
        '80',
      );
      expect(hosts(built)).toEqual(theService);
    });

    it('routes use the VirtualService of each port if one listener serves all ports', () => {
      const ports = '[{ number: 80, name: http, protocol: HTTP }, { number: 81, name: h, protocol: HTTP }]';
      const mesh =
        service('a.test', ports) +
        serviceMatching('first', 'a.test', 'port: 81') +
        serviceMatching('new', 'new.test', 'port: 81');
      expect(hosts(configuration(mesh, 'http_proxy'))).toEqual([
        'a.test:80 → outbound|80||a.test',
        'a.test:81 → outbound|81||never.test',
        'allow_any → PassthroughCluster',
      ]);
    });
  });

  it("routes prefer objects that are private to the client's namespace to public ones", () => {
    const ownRoutes = virtualService('own', 'a.test', 'own.test').replace('spec: { ', 'spec: { exportTo: ["."], ');
    const mesh = service('a.test') + virtualService('public', 'a.test', 'to.test') + ownRoutes;
    expect(hosts(configuration(mesh, '80'))[0]).toBe('a.test:80 → outbound|80||own.test');
  });

  it('routes use the hash policies of all their destinations', () => {
    const rule = (host: string, hash: string): string => `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: ${host}, namespace: shop }
spec: { host: ${host}, trafficPolicy: { loadBalancer: { consistentHash: { ${hash} } } } }
---`;
    const weighted = [10, 40, 30, 20].map(
      (weight, index) => `{ destination: { host: ${'abcd'[index]}.test }, weight: ${weight} }`,
    );
    const mesh = `${['a', 'b', 'c', 'd'].map((name) => service(`${name}.test`)).join('')}
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: weighted, namespace: shop }
spec: { hosts: [a.test], http: [{ route: [${weighted}] }] }
---`;
    const hashes = (rules: string): (string | undefined)[] => {
      const [host] = configuration(mesh + rules, '80').virtualHosts;
      const action = host!.routes[0]!.action;
      return action.case === 'route' ? action.value.hashPolicy.map((one) => one.policySpecifier.case) : [];
    };
    expect(hashes('')).toEqual([]);
    expect(hashes(rule('b.test', 'httpHeaderName: x'))).toEqual(['header']);
    const all =
      rule('b.test', 'httpHeaderName: x') + rule('c.test', 'httpHeaderName: x') + rule('d.test', 'useSourceIp: true');
    expect(hashes(all)).toEqual(['header', 'connectionProperties']);
  });

  it('a host without a service is served only on port 80', () => {
    const mesh =
      service('a.test', '[{ number: 80, name: http, protocol: HTTP }, { number: 81, name: h, protocol: HTTP }]') +
      virtualService('new', 'new.test', 'a.test');
    expect(hosts(configuration(mesh, '80'))).toContain('new.test:80 → outbound|80||a.test');
    expect(hosts(configuration(mesh, '81')).join()).not.toContain('new.test');
  });

  it('an IPv6 host of a VirtualService is served', () => {
    const mesh = service('a.test') + virtualService('address', '2001:db8::1', 'a.test');
    const host = configuration(mesh, '80').virtualHosts.find(({ domains }) => domains.includes('[2001:db8::1]'));
    expect(host?.name).toBe('2001:db8::1:80');
    expect(host?.domains).toEqual(['[2001:db8::1]']);
  });

  it('a host that a wildcard service covers is served on the port of that service', () => {
    const mesh =
      service('*.wild.test', '[{ number: 81, name: http, protocol: HTTP }]') +
      virtualService('api', 'api.wild.test', 'elsewhere.test');
    expect(hosts(configuration(mesh, '81'))).toContain('api.wild.test:81 → outbound|81||elsewhere.test');
  });

  it('the first virtual host gets a shared domain, because Envoy rejects duplicates', () => {
    const mesh = service('a.shop.svc.cluster.local') + service('a');
    const { virtualHosts } = configuration(mesh, '80');
    const domains = virtualHosts.flatMap((host) => host.domains);
    expect(new Set(domains).size).toBe(domains.length);
  });

  it('ports are distinguished by the Host header if one listener serves all of them', () => {
    const mesh = service(
      'a.test',
      '[{ number: 81, name: h, protocol: HTTP }, { number: 80, name: http, protocol: HTTP }]',
    );
    const routes = configuration(mesh, 'http_proxy');
    expect(routes.ignorePortInHostMatching).toBe(false);
    const domainsByName = new Map(routes.virtualHosts.map((host) => [host.name, host.domains]));
    expect(domainsByName.get('a.test:80')).toContain('a.test');
    expect(domainsByName.get('a.test:81')).toEqual(['a.test:81', 'a.test.:81']);
  });

  it('a configuration that no listener uses is empty', () => {
    expect(configuration(service('a.test'), 'nonsense').virtualHosts).toEqual([]);
  });

  it('a service with a detected protocol has one virtual host for all requests', () => {
    const { virtualHosts } = configuration(service('a.test'), 'a.test:80');
    expect(virtualHosts.map((host) => host.domains)).toEqual([['*']]);
  });

  describe('service with an alias', () => {
    const kubernetes = (name: string, spec: string): string => `
apiVersion: v1
kind: Service
metadata: { name: ${name}, namespace: shop }
spec: { ${spec} }
---`;
    const web = kubernetes('web', 'clusterIP: 10.96.0.1, ports: [{ name: http, port: 80 }]');
    const alias = kubernetes(
      'front',
      'type: ExternalName, externalName: web.shop.svc.cluster.local, ports: [{ name: http, port: 80 }]',
    );
    const domains = ({ virtualHosts }: RouteConfiguration): string[] => virtualHosts[0]?.domains ?? [];

    it('the virtual host has the names of both service and alias', () => {
      const built = configuration(web + alias, '80');
      expect(hosts(built)).toEqual([
        'web.shop.svc.cluster.local:80 → outbound|80||web.shop.svc.cluster.local',
        'allow_any → PassthroughCluster',
      ]);
      expect(domains(built)).toEqual(
        expect.arrayContaining(['web', 'front', 'front.shop', 'front.shop.svc.cluster.local']),
      );
    });

    const front = 'front.shop.svc.cluster.local';

    it('routes use the VirtualService of the requested name, or else of the service', () => {
      const exactService = virtualService('by-name', 'web.shop.svc.cluster.local', 'to.test');
      const built = configuration(web + alias + exactService, '80');
      expect(hosts(built)[0]).toBe('web.shop.svc.cluster.local:80 → outbound|80||to.test');
      expect(domains(built)).toContain('front');
      expect(
        hosts(configuration(web + alias + exactService + virtualService('by-alias', front, 'other.test'), '80')),
      ).toEqual([
        `${front}:80 → outbound|80||other.test`,
        'web.shop.svc.cluster.local:80 → outbound|80||to.test',
        'allow_any → PassthroughCluster',
      ]);
    });

    it("routes use an intermediate alias' VirtualService for each alias that leads to it", () => {
      const first = kubernetes('first', `type: ExternalName, externalName: ${front}`);
      const built = configuration(web + alias + first + virtualService('by-alias', front, 'other.test'), '80');
      expect(hosts(built)).toEqual([
        'first.shop.svc.cluster.local:80 → outbound|80||other.test',
        `${front}:80 → outbound|80||other.test`,
        'web.shop.svc.cluster.local:80 → outbound|80||web.shop.svc.cluster.local',
        'allow_any → PassthroughCluster',
      ]);
    });

    it('routes use clusters of the alias if a DestinationRule names the alias', () => {
      const rule = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: front, namespace: shop }
spec: { host: front, subsets: [{ name: v1, labels: { v: '1' } }] }
---`;
      expect(hosts(configuration(web + alias + rule, '80'))).toEqual([
        `${front}:80 → outbound|80||${front}`,
        'web.shop.svc.cluster.local:80 → outbound|80||web.shop.svc.cluster.local',
        'allow_any → PassthroughCluster',
      ]);
      const wildcardRule = rule.replace('host: front,', 'host: "*.shop.svc.cluster.local",');
      expect(hosts(configuration(web + alias + wildcardRule, '80'))[0]).toBe(
        'web.shop.svc.cluster.local:80 → outbound|80||web.shop.svc.cluster.local',
      );
    });

    it('an alias that does not resolve or refers to itself is served by its VirtualService', () => {
      const danglingAlias = kubernetes('lost', 'type: ExternalName, externalName: www.example.com');
      const circle = kubernetes('self', 'type: ExternalName, externalName: self.shop.svc.cluster.local');
      const overridingServices = virtualService('a', 'lost', 'web') + virtualService('b', 'self', 'web');
      expect(hosts(configuration(web + danglingAlias + circle + overridingServices, '80'))).toEqual([
        'lost.shop.svc.cluster.local:80 → outbound|80||web.shop.svc.cluster.local',
        'self.shop.svc.cluster.local:80 → outbound|80||web.shop.svc.cluster.local',
        'web.shop.svc.cluster.local:80 → outbound|80||web.shop.svc.cluster.local',
        'allow_any → PassthroughCluster',
      ]);
    });

    it('a VirtualService with an alias as destination routes to the service', () => {
      const built = configuration(web + alias + virtualService('home', 'home.test', 'front'), '80');
      expect(hosts(built)).toContain('home.test:80 → outbound|80||web.shop.svc.cluster.local');
    });

    it("a client that imports only the alias has routes for it, regardless of the alias's ports", () => {
      const plainAlias = kubernetes('front', 'type: ExternalName, externalName: web.shop.svc.cluster.local');
      const sidecar = `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: { name: default, namespace: shop }
spec: { egress: [{ port: { number: 80, name: http, protocol: HTTP }, hosts: [./front.shop.svc.cluster.local] }] }
---`;
      expect(domains(configuration(web + plainAlias + sidecar, '80'))).toContain('front');
    });
  });

  it('unknown hosts are resolved if the outbound policy requires it', () => {
    const policy = 'outboundTrafficPolicy: { mode: ALLOW_ANY_DYNAMIC_DNS }';
    expect(hosts(configuration(service('a.test'), '80', policy))).toContain('allow_any → AllowAnyDynamicDNSCluster');
  });
});

describe('precomputed routes', () => {
  it('a client builds the routes itself if the computation that it waits for fails', () => {
    const { context } = givenMesh(service('a.test') + service('b.test'));
    const ahead = (namespace: string, cache: Memory) =>
      precomputeSidecarRoutes(givenShape({ namespace }), context, cache, ['80']);
    let faults = 1;
    let plans = 0;
    const failing: Memory = {
      getOrBuild: (type, key, inputs, build) => {
        if (faults-- > 0) throw new Error('a fault');
        if (key.startsWith('plan ')) plans++;
        return noMemory.getOrBuild(type, key, inputs, build);
      },
      latestValue: () => undefined,
    };
    const [first, second] = [ahead('shop', failing), ahead('bank', failing)];
    first.next();
    expect([...second].length).toBeGreaterThan(1);
    expect([plans, first.next().done]).toEqual([1, true]);
    faults = 1;
    const { context: other } = givenMesh(service('a.test'));
    expect(() => [...precomputeSidecarRoutes(givenShape({ namespace: 'shop' }), other, failing, ['80'])]).toThrow(
      'a fault',
    );
  });
});
