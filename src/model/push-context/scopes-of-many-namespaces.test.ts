import { describe, expect, it } from 'vitest';
import { givenShape } from '../../../test/fixtures/given-mesh.ts';
import { givenObject } from '../../../test/fixtures/given-world.ts';
import { type Config, configKeyOf, configKeyText } from '../config/config.ts';
import { configSetOf } from '../config/config-set.ts';
import { defaultMeshConfig } from '../mesh/mesh-config.ts';
import type { ProxyShape } from '../proxy/proxy-shape.ts';
import { typesToPush } from '../proxy/types-to-push.ts';
import type { Service } from '../services/service.ts';
import { buildServiceRegistry } from '../services/service-registry.ts';
import { buildPushContext } from './build-push-context.ts';
import type { PushContext } from './push-context.ts';

const services = 240;

interface Variant {
  /** Namespaces that service 3 and virtual service 3 are exported to; absent for all. */
  readonly exportTo?: readonly string[];
  /** Imports of each namespace's Sidecar object. */
  readonly imports?: readonly string[];
  /** Whether another namespace has a service with the host of service 5. */
  readonly twice?: boolean;
}

/** A mesh with many namespaces, each with a sidecar. Counts accesses to services and rules. */
class CountedMesh {
  accesses = 0;
  context: PushContext;
  readonly namespaces: number;
  readonly #variant: Variant;
  readonly #objects = new Map<string, Config>();
  readonly #countingCopies = new WeakMap<object, object>();
  readonly #shapes: readonly ProxyShape[];

  constructor(namespaces: number, variant: Variant) {
    this.namespaces = namespaces;
    this.#variant = variant;
    const all = Array.from({ length: services }, (_, index) => index);
    const { imports } = variant;
    this.#set([
      ...all.flatMap((index) => [this.service(index), this.route(index), this.rule(index)]),
      ...(variant.twice ? [this.service(5, 'STATIC', 'ns-9')] : []),
      ...Array.from({ length: imports ? namespaces : 0 }, (_, index) =>
        givenObject('Sidecar', `ns-${index}`, 'default', { egress: [{ hosts: imports, captureMode: 'DEFAULT' }] }),
      ),
    ]);
    this.context = this.#build();
    this.#shapes = Array.from({ length: namespaces }, (_, index) =>
      givenShape({ namespace: `ns-${index}` }, this.context),
    );
    for (const shape of this.#shapes) this.context.sidecarScopeFor(shape);
  }

  hostOf(index: number): string {
    return `svc-${index}.ns-${index % this.namespaces}.svc.cluster.local`;
  }

  #exportOf(index: number): object {
    const { exportTo } = this.#variant;
    return index === 3 && exportTo !== undefined ? { exportTo } : {};
  }

  service(index: number, resolution = 'STATIC', namespace = `ns-${index % this.namespaces}`): Config {
    return givenObject('ServiceEntry', namespace, `s${index}`, {
      hosts: [this.hostOf(index)],
      ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
      location: 'MESH_INTERNAL',
      resolution,
      ...this.#exportOf(index),
    });
  }

  route(index: number, timeoutMs = 1): Config {
    const route = [{ destination: { host: this.hostOf(index) } }];
    const spec = { hosts: [this.hostOf(index)], http: [{ timeoutMs, route }], ...this.#exportOf(index) };
    return givenObject('VirtualService', `ns-${index % this.namespaces}`, `v${index}`, spec);
  }

  rule(index: number, http2MaxRequests = 1, host = this.hostOf(index)): Config {
    const trafficPolicy = { connectionPool: { http: { http2MaxRequests } } };
    return givenObject('DestinationRule', `ns-${index % this.namespaces}`, `d${index}`, { host, trafficPolicy });
  }

  /** Counts accesses to determine all namespaces that a change affects, and to build the next scopes. */
  accessesOf(change: Config): number {
    const previous = this.context;
    this.#set([change]);
    this.accesses = 0;
    this.context = this.#build({ context: previous, changedKeys: [keyOf(change)] });
    for (const shape of this.#shapes) {
      this.context.sidecarScopeFor(shape);
      typesToPush(
        { forced: false, keys: [keyOf(change)] },
        { shape, context: this.context },
        { shape, context: previous },
      );
    }
    return this.accesses;
  }

  scopeOf(namespace: number) {
    return this.context.sidecarScopeFor(this.#shapes[namespace]!);
  }

  #set(objects: readonly Config[]): void {
    for (const object of objects) this.#objects.set(configKeyText(object), object);
  }

  #build(previous?: Parameters<typeof buildPushContext>[1]): PushContext {
    const configs = configSetOf([...this.#objects.values()]);
    const registry = buildServiceRegistry(configs);
    const input = {
      version: '1',
      mesh: defaultMeshConfig,
      domain: 'cluster.local',
      configs: {
        ...configs,
        DestinationRule: configs.DestinationRule.map((one) => this.#countReads(one, ['namespace'])),
      },
      ...registry,
      services: registry.services.map((one) => this.#countedService(one)),
    };
    return buildPushContext(input, previous);
  }

  readonly #cachedServices = new Map<string, { readonly text: string; readonly counted: Service }>();

  /** Returns the same object while the service is unchanged. */
  #countedService(service: Service): Service {
    const id = `${service.namespace}/${service.hostname}`;
    const text = JSON.stringify([service, [...service.exportTo]]);
    const cachedService = this.#cachedServices.get(id);
    if (cachedService?.text === text) return cachedService.counted;
    const countingService = this.#countReads(service, ['hostname', 'exportTo']);
    this.#cachedServices.set(id, { text, counted: countingService });
    return countingService;
  }

  #countReads<T extends object>(original: T, fields: readonly (keyof T)[]): T {
    const cachedCopy = this.#countingCopies.get(original);
    if (cachedCopy !== undefined) return cachedCopy as T;
    const countingCopy = { ...original };
    for (const field of fields) {
      const get = () => {
        this.accesses++;
        return original[field];
      };
      Object.defineProperty(countingCopy, field, { get, enumerable: true });
    }
    this.#countingCopies.set(original, countingCopy);
    return countingCopy;
  }
}

/** Returns the key of a change, in the form that registries and pushes use. */
function keyOf(change: Config) {
  const { hosts } = change.spec as { hosts?: readonly string[] };
  return change.kind === 'ServiceEntry' ? { ...configKeyOf(change), name: hosts![0]! } : configKeyOf(change);
}

const [smallCount, largeCount] = [10, 60];

const variants: readonly (readonly [string, Variant])[] = [
  ['all services and rules are public', {}],
  ['one service and one rule are private', { exportTo: ['.'] }],
  ['one service and one rule are visible to two namespaces', { exportTo: ['ns-1', 'ns-2'] }],
  ['two define the same host', { twice: true }],
  ['each has a Sidecar object', { imports: ['./*', 'istio-system/*'] }],
  ['each imports a host from any namespace', { imports: ['./*', '*/svc-3.ns-3.svc.cluster.local'] }],
];

describe.each(variants)('a mesh with many namespaces (%s)', (_name, variant) => {
  it.each([
    ['virtual service', (mesh: CountedMesh) => mesh.route(7, 2)],
    ['private virtual service', (mesh: CountedMesh) => mesh.route(3, 2)],
    ['destination rule', (mesh: CountedMesh) => mesh.rule(7, 2)],
    ['destination rule for a wildcard', (mesh: CountedMesh) => mesh.rule(7, 2, `*.ns-7.svc.cluster.local`)],
  ])('rebuilds a changed %s at the same cost per namespace, however many services there are', (_kind, change) => {
    const [smallMesh, largeMesh] = [new CountedMesh(smallCount, variant), new CountedMesh(largeCount, variant)];
    for (const mesh of [smallMesh, largeMesh]) mesh.accessesOf(mesh.route(11, 5));
    const [smallAccesses, largeAccesses] = [
      smallMesh.accessesOf(change(smallMesh)),
      largeMesh.accessesOf(change(largeMesh)),
    ];
    expect((largeAccesses - smallAccesses) / (largeCount - smallCount)).toBeLessThan(services / 8);
    expect(largeAccesses).toBeLessThan(15 * services);
  });
});

describe('the sidecar scopes of namespaces', () => {
  it('share their services even if other namespaces have private services', () => {
    const mesh = new CountedMesh(largeCount, { exportTo: ['.'] });
    expect(mesh.scopeOf(1).services).toBe(mesh.scopeOf(2).services);
    expect(mesh.scopeOf(1).services).toHaveLength(services - 1);
    expect(mesh.scopeOf(3).services).toHaveLength(services);
    expect(mesh.scopeOf(1).egressListeners[0]!.virtualServices).toBe(
      mesh.scopeOf(2).egressListeners[0]!.virtualServices,
    );
  });

  it('keep their services when a private service of another namespace changes', () => {
    const mesh = new CountedMesh(largeCount, { exportTo: ['.'] });
    const [changedScope, other] = [mesh.scopeOf(3), mesh.scopeOf(4)];
    mesh.accessesOf(mesh.service(3, 'DNS'));
    expect(mesh.scopeOf(4)).toBe(other);
    expect(mesh.scopeOf(3).services).not.toBe(changedScope.services);
  });

  it('keep their services after a route change, and all their parts after a destination rule change', () => {
    const mesh = new CountedMesh(largeCount, {});
    const previous = mesh.scopeOf(4);
    mesh.accessesOf(mesh.rule(4, 2));
    expect(mesh.scopeOf(4)).toBe(previous);
    mesh.accessesOf(mesh.route(4, 2));
    expect(mesh.scopeOf(4)).not.toBe(previous);
    expect(mesh.scopeOf(4).services).toBe(previous.services);
  });

  it('are unchanged if nothing that a Sidecar object imports changes', () => {
    const mesh = new CountedMesh(largeCount, { imports: ['./*'] });
    const [changedScope, other] = [mesh.scopeOf(7), mesh.scopeOf(8)];
    mesh.accessesOf(mesh.route(7, 2));
    expect(mesh.scopeOf(8)).toBe(other);
    expect(mesh.scopeOf(7)).not.toBe(changedScope);
    mesh.accessesOf(mesh.service(7, 'DNS'));
    expect(mesh.scopeOf(8)).toBe(other);
  });
});
