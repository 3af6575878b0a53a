import { describe, expect, it } from 'vitest';
import { failingChecks, nodeServices, serviceInstances } from './catalog-json.ts';
import { type ConsulInstance, withHealthChecks } from './consul-instance.ts';
import { type ConsulOptions, convertConsulService } from './consul-service.ts';

const options: ConsulOptions = {
  ...{ trustDomain: 'mesh.test', clusterId: 'c1', defaultServiceExportTo: ['*'] },
  ...{ exportingNamespaces: ['*'], rootNamespace: 'istio-system' },
};
const node = { name: 'n1', address: '10.0.0.1', datacenter: 'dc1' };

function instance(overrides: Partial<ConsulInstance> = {}): ConsulInstance {
  return {
    ...{ node, id: 'web-1', service: 'web', address: '', port: 8080, tags: [], meta: {} },
    ...{ weights: { passing: 1, warning: 1 }, health: 'passing' },
    ...overrides,
  };
}

const converted = (...instances: Partial<ConsulInstance>[]) => convertConsulService(instances.map(instance), options);

describe('a Consul service', () => {
  it('has the same names, namespace and ports as in Istio', () => {
    const { service, problems } = converted({ meta: { protocol: 'http' } });
    expect(service).toMatchObject({
      ...{ hostname: 'web.service.consul', namespace: 'default', defaultAddress: '0.0.0.0' },
      ...{ resolution: 'ClientSideLB', meshExternal: false, registry: 'Consul' },
      ports: [{ name: 'http', number: 8080, protocol: 'HTTP' }],
    });
    expect(problems).toEqual([]);
    expect(converted({ service: 'a.B' }).service?.hostname).toBe('a.b.service.consul');
  });

  it.each(['has space', 'x|y', 'ü', '-a', 'a..b', 'x'.repeat(250)])(
    'is rejected with a message if its name is %j',
    (name) => {
      const { service, endpoints, problems } = converted({ service: name });
      expect([service, endpoints]).toEqual([undefined, []]);
      expect(problems[0]).toMatch(/must be a DNS name/);
    },
  );

  it('has one port for each port number, with a unique name and the first protocol', () => {
    const { service, problems } = converted(
      { id: 'a', port: 81, meta: { protocol: 'http' } },
      { id: 'b', port: 80, meta: { protocol: 'HTTP' } },
      { id: 'c', port: 82 },
      { id: 'd', port: 80, meta: { protocol: 'grpc' } },
      { id: 'e', port: 83, meta: { protocol: 'nonsense' } },
      { id: 'f', port: 0 },
    );
    expect(service?.ports.map(({ name, number, protocol }) => `${name} ${number} ${protocol}`)).toEqual([
      ...['http 80 HTTP', 'http-81 81 HTTP', 'tcp 82 TCP', 'tcp-83 83 TCP'],
    ]);
    expect(problems).toEqual([
      'instance "f" on node "n1" has no port from 1 to 65535; register it with a port',
      'instances disagree on the protocol of port 80: http is used, not grpc',
      'meta "protocol" of port 83 must be http, http2, grpc, tcp, tls …, got "nonsense": TCP is used',
    ]);
  });

  it('is resolved by DNS if an address is a host name, and is external if its metadata marks it as external', () => {
    expect(converted({ address: 'db.example.com', meta: { external: 'yes' } }).service).toMatchObject({
      ...{ resolution: 'DNSLB', meshExternal: true },
    });
    const { service, problems } = converted({ address: 'not an address' });
    expect(service).toBeUndefined();
    expect(problems[0]).toMatch(/must be an IP address or a host name, got "not an address"/);
  });
});

describe('a Consul endpoint', () => {
  it('has the weight for its health, is omitted at weight 0, and is unhealthy if a check is critical', () => {
    const weights = { passing: 10, warning: 2 };
    const of = (overrides: Partial<ConsulInstance>) =>
      converted({ weights, ...overrides }).endpoints.map(({ weight, health }) => `${weight} ${health}`);
    expect(of({})).toEqual(['10 healthy']);
    expect(of({ health: 'warning' })).toEqual(['2 healthy']);
    expect(of({ health: 'critical' })).toEqual(['10 unhealthy']);
    expect(of({ weights: { passing: 0, warning: 2 } })).toEqual([]);
  });

  it('has labels from tags and from valid metadata values, and tags take precedence', () => {
    const meta = { version: 'v1', team: 'shop', text: 'a b' };
    const [endpoint] = converted({ tags: ['version|v2', 'plain', 'zone|a|b'], meta }).endpoints;
    expect(endpoint?.labels).toEqual({ version: 'v2', team: 'shop', zone: 'a' });
  });

  it('has the locality of its labels, or else of its instance, node or datacenter', () => {
    const of = (overrides: Partial<ConsulInstance>) => converted(overrides).endpoints[0]?.locality;
    const located = { ...node, locality: { region: 'r1', zone: 'z1' } };
    expect(of({})).toBe('dc1');
    expect(of({ node: located })).toBe('r1/z1');
    expect(of({ node: located, locality: { region: 'r2', zone: '' } })).toBe('r2');
    expect(of({ node: located, tags: ['istio-locality|r3.z3'] })).toBe('r3/z3');
  });

  it('accepts mutual TLS only if its label specifies this', () => {
    const [plain] = converted({}).endpoints;
    const [mutual] = converted({ tags: ['security.istio.io/tlsMode|istio'] }).endpoints;
    expect([plain?.tlsMode, plain?.serviceAccount]).toEqual(['disabled', '']);
    expect([mutual?.tlsMode, mutual?.serviceAccount]).toEqual(['istio', 'spiffe://mesh.test/ns/default/sa/default']);
  });
});

const nodeBody = {
  Node: { Node: 'n1', Address: '10.0.0.1', Datacenter: 'dc1' },
  Services: [
    { ID: 'web-1', Service: 'web', Tags: ['a|b'], Meta: null, Port: 80, Weights: { Passing: 3, Warning: 1 } },
    { ID: 'p', Service: 'web-proxy', Kind: 'connect-proxy', Port: 81 },
    { ID: 'q', Service: 'api-sidecar-proxy', Port: 82 },
    { ID: 'consul', Service: 'consul', Port: 8300 },
  ],
};
const checksBody = [
  { Node: 'n1', ServiceID: 'web-1', Status: 'warning' },
  { Node: 'n1', ServiceID: '', Status: 'critical' },
  { Node: 'n2', ServiceID: 'web-1', Status: 'passing' },
];

describe("Consul's JSON", () => {
  it('does not result in services for Consul itself, sidecar proxies or gateways', () => {
    expect(nodeServices(nodeBody).instances.map(({ service }) => service)).toEqual(['web']);
    expect(nodeServices({ Node: null, Services: null })).toEqual({ instances: [] });
  });

  it('makes an instance critical if the worst check of the instance or its node is critical', () => {
    const [web] = nodeServices(nodeBody).instances;
    const checks = failingChecks(checksBody);
    expect(checks).toHaveLength(2);
    const statusOf = (id: string) => new Map([['n1', new Map([[id, 'critical' as const]])]]);
    expect(withHealthChecks(web!, statusOf('web-1')).health).toBe('critical');
    expect(withHealthChecks(web!, statusOf('')).health).toBe('critical');
    expect(withHealthChecks(web!, statusOf('other'))).toBe(web);
    const Checks = [{ Status: 'passing' }, { Status: 'unknown' }];
    const [unknownInstance] = serviceInstances([{ Node: nodeBody.Node, Service: nodeBody.Services[0], Checks }]);
    expect(unknownInstance?.health).toBe('critical');
  });

  it('is rejected completely or results in valid services, whatever its shape', () => {
    const oddValues = [
      null,
      true,
      -1,
      1e300,
      '',
      '__proto__',
      'a\nb',
      [],
      {},
      [null],
      { __proto__: 1 },
      'x'.repeat(5_000),
    ];
    const seed = 42;
    let state = seed;
    const draw = (limit: number): number => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      return state % limit;
    };
    const breakRandomly = (value: unknown): unknown => {
      if (draw(12) === 0) return oddValues[draw(oddValues.length)];
      if (Array.isArray(value)) return value.map(breakRandomly);
      if (typeof value !== 'object' || value === null) return value;
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, breakRandomly(inner)]));
    };
    const healthBody = [{ Node: nodeBody.Node, Service: nodeBody.Services[0], Checks: checksBody }];
    let servedCount = 0;
    for (let round = 0; round < 5_000; round++) {
      const readers = [
        () => nodeServices(breakRandomly(nodeBody)).instances,
        () => serviceInstances(breakRandomly(healthBody)),
        () => {
          failingChecks(breakRandomly(checksBody));
          return [];
        },
      ];
      let instances: readonly ConsulInstance[] = [];
      try {
        instances = readers[draw(readers.length)]!();
      } catch (error) {
        expect((error as Error).message, `seed ${seed}, round ${round}`).toMatch(/must be an? (array|object), got /);
      }
      for (const one of instances) {
        const { service, endpoints } = convertConsulService([one], options);
        if (service === undefined) expect(endpoints).toEqual([]);
        else {
          servedCount++;
          expect(service.hostname).toMatch(/^[-a-z0-9_.]+\.service\.consul$/);
          for (const { port, weight } of endpoints) {
            expect(port).toBeGreaterThan(0);
            expect(port).toBeLessThan(65_536);
            expect(weight).toBeGreaterThan(0);
          }
        }
      }
    }
    expect(servedCount).toBeGreaterThan(100);
  });
});
