import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import type { Config } from '../../model/config/config.ts';
import { routeType } from '../../networking/index.ts';
import { frameOf } from '../xds/responses/ads-response.ts';
import type { MeshNode } from './mesh-resources.ts';

const fewServices = 60;
const manyServices = 300;
const fewNamespaces = 5;
const manyNamespaces = 30;

/** A mesh with services, rules and a sidecar in each namespace. */
class Spread {
  readonly world: GivenWorld;
  readonly nodes: readonly MeshNode[];
  readonly #namespaces: number;

  constructor(namespaces: number, services = fewServices) {
    this.#namespaces = namespaces;
    const all = Array.from({ length: services }, (_, index) => index);
    this.world = new GivenWorld(all.flatMap((i) => [this.service(i), this.route(i, 1000), this.rule(i, 10)]));
    this.nodes = Array.from({ length: namespaces }, (_, index) =>
      this.world.connect(`10.9.0.${index}`, { namespace: `ns-${index}` }),
    );
  }

  #namespaceOf(index: number): string {
    return `ns-${index % this.#namespaces}`;
  }

  #hostOf(index: number): string {
    return `svc-${index}.${this.#namespaceOf(index)}.svc.cluster.local`;
  }

  service(index: number, resolution = 'STATIC'): Config {
    return givenObject('ServiceEntry', this.#namespaceOf(index), `s${index}`, {
      hosts: [this.#hostOf(index)],
      addresses: [`10.250.${index >> 8}.${index & 255}`],
      ports: [{ number: 8080, name: 'http', protocol: 'HTTP' }],
      location: 'MESH_INTERNAL',
      resolution,
      endpoints: [{ address: `10.1.${index >> 8}.${index & 255}` }],
    });
  }

  route(index: number, timeoutMs: number): Config {
    const route = [{ destination: { host: this.#hostOf(index) } }];
    const spec = { hosts: [this.#hostOf(index)], http: [{ timeoutMs, route }] };
    return givenObject('VirtualService', this.#namespaceOf(index), `v${index}`, spec);
  }

  rule(index: number, http2MaxRequests: number): Config {
    const trafficPolicy = { connectionPool: { http: { http2MaxRequests } } };
    return givenObject('DestinationRule', this.#namespaceOf(index), `d${index}`, {
      host: this.#hostOf(index),
      trafficPolicy,
    });
  }

  /** Cost of serving routes to all sidecars: cache lookups, misses and encodings. */
  costOf(change: Config | undefined) {
    const { counts } = this.world.cache;
    const countsBefore = { ...counts, encoded: this.world.encodings };
    const resourceChange = change && this.world.put(change);
    for (const node of this.nodes) {
      if (resourceChange !== undefined) node.typesToPush(resourceChange, [routeType]);
      node.get(routeType, ['8080']);
    }
    const misses = counts.misses - countsBefore.misses;
    const lookups = counts.hits - countsBefore.hits + misses;
    return { lookups, misses, encoded: this.world.encodings - countsBefore.encoded };
  }
}

/** Versions of a new sidecar in each namespace. */
function versionsIn(mesh: Spread): readonly string[] {
  return mesh.nodes.map((_, index) => {
    const node = mesh.world.connect(`10.8.0.${index}`, { namespace: `ns-${index}` });
    return node.get(routeType, ['8080'])!.resources.get('8080')!.version;
  });
}

/** Set of the distinct chunks of all routes. */
class Pieces {
  readonly distinctChunks: ReadonlySet<Uint8Array>;

  constructor({ nodes }: Spread) {
    const resources = nodes.flatMap((node) => [...node.get(routeType, ['8080'])!.resources.values()]);
    this.distinctChunks = new Set(resources.flatMap((resource) => frameOf(resource, true)));
  }

  get bytes(): number {
    return [...this.distinctChunks].reduce((sum, { length }) => sum + length, 0);
  }

  newSince({ distinctChunks }: Pieces): number {
    return [...this.distinctChunks].reduce((sum, piece) => sum + (distinctChunks.has(piece) ? 0 : piece.length), 0);
  }
}

describe('encoded routes of many namespaces', () => {
  it('share memory, so that a change rebuilds only neighboring blocks', () => {
    const one = new Pieces(new Spread(1, manyServices)).bytes;
    const namespaces = 100;
    const spread = new Spread(namespaces, manyServices);
    const countsBefore = new Pieces(spread);
    // Services have other domains in their own namespace, which therefore has its own copy of their blocks.
    expect(countsBefore.bytes).toBeLessThan((namespaces / 2) * one);
    spread.costOf(spread.route(7, 2000));
    const piecesAfter = new Pieces(spread);
    expect(piecesAfter.newSince(countsBefore)).toBeGreaterThan(0);
    expect(piecesAfter.newSince(countsBefore)).toBeLessThan(3 * one);
    const freshSpread = new Spread(namespaces, manyServices);
    freshSpread.world.put(freshSpread.route(7, 2000));
    expect(versionsIn(freshSpread)).toEqual(versionsIn(spread));
  });
});

describe('routes of sidecars in many namespaces', () => {
  let smallSpread: Spread;
  let largeSpread: Spread;
  let initialCosts: { readonly small: ReturnType<Spread['costOf']>; readonly large: ReturnType<Spread['costOf']> };

  beforeAll(() => {
    [smallSpread, largeSpread] = [new Spread(fewNamespaces), new Spread(manyNamespaces)];
    initialCosts = { small: smallSpread.costOf(undefined), large: largeSpread.costOf(undefined) };
  });

  it("are built once, and each namespace's configuration consists of shared parts", () => {
    const perNamespace = (initialCosts.large.misses - initialCosts.small.misses) / (manyNamespaces - fewNamespaces);
    expect(perNamespace).toBeLessThanOrEqual(2);
    // The lookups are for its own services and the plan of the shared configuration.
    expect((initialCosts.large.lookups - initialCosts.small.lookups) / (manyNamespaces - fewNamespaces)).toBeLessThan(
      12,
    );
    expect(initialCosts.large.encoded).toBe(manyNamespaces);
    // The entries are routes of each virtual host, and two for each namespace.
    expect(largeSpread.world.cache.size).toBeLessThanOrEqual(fewServices + 2 * manyNamespaces + 1);
  });

  it.each([
    ['virtual service', (mesh: Spread) => mesh.route(7, 2000)],
    ['destination rule', (mesh: Spread) => mesh.rule(7, 20)],
    ['service', (mesh: Spread) => mesh.service(7, 'DNS')],
  ])('are rebuilt only where a %s changes, without looking up others', (_kind, change) => {
    const [few_, many_] = [smallSpread.costOf(change(smallSpread)), largeSpread.costOf(change(largeSpread))];
    // The misses are one virtual host, and a configuration for each namespace.
    expect(many_.misses).toBeLessThanOrEqual(1 + 2 * manyNamespaces);
    expect((many_.lookups - few_.lookups) / (manyNamespaces - fewNamespaces)).toBeLessThanOrEqual(5);
  });

  it('equal, after several changes, those of a new mesh with the same objects', () => {
    const freshSpread = new Spread(manyNamespaces);
    for (const change of [largeSpread.route(3, 1), largeSpread.rule(3, 1), largeSpread.service(3, 'DNS')]) {
      largeSpread.costOf(change);
      freshSpread.world.put(change);
    }
    for (const change of [largeSpread.route(7, 2000), largeSpread.rule(7, 20), largeSpread.service(7, 'DNS')])
      freshSpread.world.put(change);
    expect(versionsIn(largeSpread)).toEqual(versionsIn(freshSpread));
  });

  it('are the same configuration for all namespaces without services', () => {
    const bytes = ['x', 'y'].map((namespace) => {
      const node = smallSpread.world.connect(`10.7.0.1`, { namespace });
      return node.get(routeType, ['8080'])!.resources.get('8080');
    });
    expect(bytes[0]).toBe(bytes[1]);
  });
});

describe("routes that are derived from another namespace's routes", () => {
  const spaces = ['a', 'b', 'c'];
  const hosts = spaces.flatMap((space) => [`x.${space}.svc.cluster.local`, `y.${space}.svc.cluster.local`]);
  // Names that clients of a namespace use for its services. Other objects use them here.
  const shortNames = ['x', 'x.a', 'y.b', 'x.c.svc'];
  const anySpace = fc.constantFrom(...spaces, 'istio-system');
  const anyHost = fc.constantFrom(...hosts, ...shortNames);
  const exportTo = fc.constantFrom(['*'], ['.'], ['a'], ['b', 'c']);
  const object = (kind: string, spec: fc.Arbitrary<object>) =>
    fc
      .tuple(anySpace, fc.constantFrom('one', 'two', 'three'), spec, fc.nat({ max: 3 }))
      .map(([space, name, misses, age]) => givenObject(kind, space, name, misses, age));
  const service = object(
    'ServiceEntry',
    fc.record({ host: anyHost, exportTo }).map((misses) => ({
      hosts: [misses.host],
      exportTo: misses.exportTo,
      ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
      location: 'MESH_INTERNAL',
      resolution: 'STATIC',
      endpoints: [{ address: '10.1.0.1' }],
    })),
  );
  const virtualService = object(
    'VirtualService',
    fc
      .record({
        host: fc.oneof(anyHost, fc.constant('unknown.test')),
        to: anyHost,
        from: fc.constantFrom('', 'a', 'b'),
        exportTo,
      })
      .map(({ host, to, from, exportTo }) => ({
        hosts: [host],
        exportTo,
        http: [
          { ...(from && { match: [{ sourceNamespace: from }] }), timeoutMs: 7, route: [{ destination: { host: to } }] },
        ],
      })),
  );
  const rule = object(
    'DestinationRule',
    fc.record({ host: anyHost, exportTo, cookie: fc.constantFrom('k', 'l') }).map((misses) => ({
      host: misses.host,
      exportTo: misses.exportTo,
      trafficPolicy: { loadBalancer: { consistentHash: { httpHeaderName: misses.cookie } } },
    })),
  );
  const objects = fc
    .tuple(
      fc.uniqueArray(fc.constantFrom(...hosts, 'x', 'y'), { minLength: 2 }),
      fc.array(fc.oneof(service, virtualService, rule), { maxLength: 8 }),
    )
    .map(([knownHosts, otherHosts]) => [
      ...knownHosts.map((host, index) =>
        givenObject('ServiceEntry', host.split('.')[1] ?? 'c', `s${index}`, {
          hosts: [host],
          ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
          location: 'MESH_INTERNAL',
          resolution: 'STATIC',
          endpoints: [{ address: `10.1.0.${index}` }],
        }),
      ),
      ...new Map(otherHosts.map((one) => [`${one.kind}/${one.namespace}/${one.name}`, one])).values(),
    ]);
  const routesOf = (world: GivenWorld, namespace: string): string => {
    const node = world.connect('10.9.0.1', { namespace });
    const frames = [...node.get(routeType, ['80'])!.resources.values()].flatMap((one) => frameOf(one, true));
    return Buffer.concat(frames).toString('latin1');
  };

  it('equal routes that are built first', () => {
    fc.assert(
      fc.property(objects, fc.shuffledSubarray(spaces, { minLength: 3 }), (drawnObjects, inTurn) => {
        const sharedWorld = new GivenWorld(drawnObjects);
        for (const namespace of inTurn) {
          expect(routesOf(sharedWorld, namespace)).toBe(routesOf(new GivenWorld(drawnObjects), namespace));
        }
      }),
      { numRuns: 150 },
    );
  });
});
