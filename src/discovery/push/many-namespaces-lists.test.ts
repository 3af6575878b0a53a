import { describe, expect, it } from 'vitest';
import { GivenWorld, givenObject } from '../../../test/fixtures/given-world.ts';
import type { Config } from '../../model/config/config.ts';
import { clusterType, endpointType, listenerType } from '../../networking/index.ts';
import type { MeshNode } from './mesh-resources.ts';

const services = 120;
const [smallCount, largeCount] = [6, 36];
const watched = [clusterType, endpointType, listenerType];

interface Variant {
  /** Exports every tenth service to its own namespace only. */
  readonly isPrivate?: boolean;
  /** Imports of a Sidecar object in each namespace. */
  readonly imports?: readonly string[];
  /** Adds a rule in each namespace for a service of another one. */
  readonly ownRules?: boolean;
  /** Whether the workload of each sidecar is selected by a service of its namespace. */
  readonly served?: boolean;
}

/** A mesh with a sidecar in each namespace that subscribes to all clusters and endpoints. */
class Mesh {
  readonly world: GivenWorld;
  readonly nodes: readonly MeshNode[];
  readonly #namespaces: number;
  readonly #variant: Variant;

  constructor(namespaces: number, variant: Variant) {
    this.#namespaces = namespaces;
    this.#variant = variant;
    const all = Array.from({ length: services }, (_, index) => index);
    const spaces = Array.from({ length: namespaces }, (_, index) => index);
    const { imports, ownRules, served } = variant;
    this.world = new GivenWorld([
      ...all.flatMap((index) => [this.service(index), this.rule(index, 10)]),
      ...spaces.flatMap((space) => (imports ? [this.#sidecar(space, imports)] : [])),
      ...spaces.flatMap((space) => (ownRules ? [this.rule(space + 1, 3, space)] : [])),
    ]);
    this.nodes = spaces.map((space) =>
      this.world.connect(served ? `10.1.0.${space}` : `10.9.0.${space}`, { namespace: `ns-${space}` }),
    );
  }

  #hostOf(index: number): string {
    return `svc-${index}.ns-${index % this.#namespaces}.svc.cluster.local`;
  }

  #sidecar(space: number, hosts: readonly string[]): Config {
    return givenObject('Sidecar', `ns-${space}`, 'default', { egress: [{ hosts, captureMode: 'DEFAULT' }] });
  }

  service(index: number, address = `10.1.0.${index}`): Config {
    return givenObject('ServiceEntry', `ns-${index % this.#namespaces}`, `s${index}`, {
      hosts: [this.#hostOf(index)],
      addresses: [`10.250.0.${index + 1}`],
      ports: [{ number: 8080, name: 'http', protocol: 'HTTP' }],
      location: 'MESH_INTERNAL',
      resolution: 'STATIC',
      endpoints: [{ address }],
      ...(this.#variant.isPrivate && index % 10 === 3 && { exportTo: ['.'] }),
    });
  }

  rule(index: number, http2MaxRequests: number, space = index % this.#namespaces): Config {
    const trafficPolicy = { connectionPool: { http: { http2MaxRequests } } };
    return givenObject('DestinationRule', `ns-${space}`, `d${index}`, { host: this.#hostOf(index), trafficPolicy });
  }

  /** Cost of serving all sidecars: cache lookups, misses, encodings, and the lists. */
  costOf(change: Config | undefined) {
    const { counts } = this.world.cache;
    const countsBefore = { ...counts, encoded: this.world.encodings };
    const resourceChange = change && this.world.put(change);
    const lists = this.nodes.map((node) => {
      const types = resourceChange === undefined ? watched : node.typesToPush(resourceChange, watched);
      return types.map(
        (type) => [type, node.get(type, type === endpointType ? this.#assignmentsOf(node) : '*')!] as const,
      );
    });
    const misses = counts.misses - countsBefore.misses;
    const lookups = counts.hits - countsBefore.hits + misses;
    return { lookups, misses, encoded: this.world.encodings - countsBefore.encoded, lists };
  }

  /** Assignments that Envoy requests for its clusters. */
  #assignmentsOf(node: MeshNode): readonly string[] {
    return [...node.get(clusterType, '*')!.resources.keys()].filter((name) => name.startsWith('outbound|'));
  }

  versions(): unknown {
    return this.nodes.map((node) => {
      const all = [
        ...node.get(clusterType, '*')!.resources,
        ...node.get(endpointType, this.#assignmentsOf(node))!.resources,
      ];
      return all.map(([name, { version }]) => `${name} ${version}`).sort();
    });
  }
}

const variants: readonly (readonly [string, Variant])[] = [
  ['with public services', {}],
  ['with private services', { isPrivate: true }],
  ['with Sidecar objects that import everything', { imports: ['*/*'] }],
  ['with Sidecar objects that import their namespace', { imports: ['./*'] }],
  ['with rules for services of other namespaces', { ownRules: true }],
  ['with workloads that serve a service', { served: true }],
];

/** Lookups for a namespace, which do not depend on the number of services: its own services, the workload's resources, and the lists. */
const perNamespace = 24;

describe.each(variants)('clusters and endpoints of sidecars in many namespaces (%s)', (_name, variant) => {
  it('are looked up and encoded once, and each further namespace costs only its own resources', () => {
    const [smallCost, largeCost] = [smallCount, largeCount].map((namespaces) =>
      new Mesh(namespaces, variant).costOf(undefined),
    );
    expect((largeCost!.lookups - smallCost!.lookups) / (largeCount - smallCount)).toBeLessThan(perNamespace);
    expect((largeCost!.encoded - smallCost!.encoded) / (largeCount - smallCount)).toBeLessThan(8);
  });

  it.each([
    ['destination rule', (mesh: Mesh) => mesh.rule(7, 20)],
    ['private service’s destination rule', (mesh: Mesh) => mesh.rule(3, 20)],
    ['service', (mesh: Mesh) => mesh.service(7, '10.2.0.1')],
  ])('are looked up and encoded in proportion to the size of a change of a %s', (_kind, change) => {
    const [smallCost, largeCost] = [smallCount, largeCount].map((namespaces) => {
      const mesh = new Mesh(namespaces, variant);
      mesh.costOf(undefined);
      mesh.costOf(mesh.rule(11, 5));
      return mesh.costOf(change(mesh));
    });
    expect((largeCost!.lookups - smallCost!.lookups) / (largeCount - smallCount)).toBeLessThan(perNamespace);
    // These are a cluster, its assignment, and inbound resources in the service's namespace. Inbound resources of other workloads are unchanged.
    expect(largeCost!.encoded).toBeLessThanOrEqual(6);
    expect(largeCost!.misses).toBeLessThanOrEqual(4);
  });

  it('equal, after several changes, those of a new mesh with the same objects', () => {
    const [mesh, freshMesh] = [new Mesh(smallCount, variant), new Mesh(smallCount, variant)];
    mesh.costOf(undefined);
    for (const change of [mesh.rule(7, 20), mesh.rule(3, 20), mesh.service(7, '10.2.0.1'), mesh.rule(7, 21)]) {
      mesh.costOf(change);
      freshMesh.world.put(change);
    }
    for (const node of freshMesh.nodes) node.typesToPush({ version: '', forced: false, configs: new Set() }, watched);
    expect(mesh.versions()).toEqual(freshMesh.versions());
  });
});

it('inbound listeners are unchanged after a change of a DestinationRule', () => {
  const mesh = new Mesh(smallCount, { served: true });
  mesh.costOf(undefined);
  const countsBefore = mesh.nodes.map((node) => node.get(listenerType, '*')!.resources);
  mesh.costOf(mesh.rule(7, 20));
  const resourcesAfter = mesh.nodes.map((node) => node.get(listenerType, '*')!.resources);
  // The sidecar in the rule's namespace serves other services, but not service 7.
  expect(resourcesAfter.map((list, index) => list === countsBefore[index])).toEqual(resourcesAfter.map(() => true));
});
