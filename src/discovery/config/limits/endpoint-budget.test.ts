import { describe, expect, it } from 'vitest';
import { givenObject } from '../../../../test/fixtures/given-world.ts';
import { type Config, configKeyText } from '../../../model/config/config.ts';
import { configSetOf } from '../../../model/config/config-set.ts';
import { buildServiceRegistry, type ServiceRegistry } from '../../../model/services/service-registry.ts';
import { runToEnd } from '../../../runtime/turns.ts';
import { defaultConfigLimits } from '../files/config-limits.ts';
import type { LimitedObjects } from './limited-objects.ts';
import { NamespaceBudgets } from './namespace-budgets.ts';

const maxEndpoints = 131_072;

const listOf = <T>(length: number, build: (index: number) => T): T[] =>
  Array.from({ length }, (_, index) => build(index));
const port = (index: number) => ({ number: 80 + index, name: `p${index}`, protocol: 'HTTP' });

interface Shape {
  readonly age?: number;
  readonly hosts?: number;
  readonly ports?: number;
  readonly labels?: Record<string, string>;
  readonly resolution?: string;
}

function entry(
  name: string,
  { age = 0, hosts = 1, ports = 1, labels = { app: 'x' }, resolution = 'STATIC' }: Shape = {},
): Config {
  const spec = { hosts: listOf(hosts, (index) => `${name}-${index}.test`), ports: listOf(ports, port), resolution };
  const otherFields = { location: 'MESH_INTERNAL', exportTo: ['.'], workloadSelector: { labels } };
  return givenObject('ServiceEntry', 'mallory', name, { ...spec, ...otherFields }, age);
}

function service(name: string, age: number, ports = 1): Config {
  const of = { type: 'ClusterIP', clusterIP: 'None', clusterIPs: [], externalIPs: [], selector: { app: 'x' } };
  const list = listOf(ports, (index) => ({ name: `p${index}`, port: 80 + index, protocol: 'TCP', targetPort: 80 }));
  const spec = {
    ...of,
    ports: list,
    internalTrafficPolicy: 'Cluster',
    publishNotReadyAddresses: false,
    externalName: '',
  };
  return givenObject('Service', 'mallory', name, { spec, status: { loadBalancer: { ingress: [] } } }, age);
}

const slice = (name: string, endpoints: number, ports: number, age = 0): Config => ({
  ...givenObject(
    'EndpointSlice',
    'mallory',
    name,
    {
      addressType: 'IPv4',
      endpoints: listOf(endpoints, (index) => ({ addresses: [address(index)], conditions: {} })),
      ports: listOf(ports, (index) => ({ name: `p${index}`, port: 8_080 + index, protocol: 'TCP' })),
    },
    age,
  ),
  labels: { 'kubernetes.io/service-name': 'web' },
});

const address = (index: number): string => `10.9.${index >> 8}.${index & 255}`;
const workload = (index: number, labels: Record<string, string> = { app: 'x' }): Config =>
  givenObject('WorkloadEntry', 'mallory', `w${index}`, { address: address(index), labels });
const pod = (index: number): Config => ({ ...givenObject('Pod', 'mallory', `pod${index}`, {}), labels: { app: 'x' } });

/** A set of objects that are added and removed one by one, with the resulting limitations. */
class BudgetFixture {
  readonly #budgets: NamespaceBudgets;
  readonly objects = new Map<string, Config>();
  limited: LimitedObjects['limitedByKey'] = new Map();

  constructor(...configs: Config[]) {
    this.#budgets = new NamespaceBudgets({
      maxExportedPerNamespace: Number.POSITIVE_INFINITY,
      maxGatewayRoutesPerNamespace: Number.POSITIVE_INFINITY,
      maxEndpointsPerNamespace: this.maxEndpoints,
    });
    this.put(...configs);
  }

  get maxEndpoints(): number {
    return maxEndpoints;
  }

  /** @returns names of objects whose limitation changed */
  put(...configs: Config[]): string[] {
    for (const config of configs) this.objects.set(configKeyText(config), config);
    return this.#limit(configs);
  }

  remove(...configs: Config[]): string[] {
    for (const config of configs) this.objects.delete(configKeyText(config));
    return this.#limit(configs);
  }

  #limit(configs: readonly Config[]): string[] {
    const keys = configs.map(configKeyText);
    const { limitedByKey, changedKeys } = runToEnd(
      this.#budgets.limitInSteps(keys, (key) => this.objects.get(key), {}, this.limited),
    );
    this.limited = limitedByKey;
    return [...changedKeys].map((key) => key.split('/').at(-1)!).sort();
  }

  get names(): string[] {
    return [...this.limited.values()].map(({ config }) => config.name).sort();
  }

  registry(previous?: ServiceRegistry): ServiceRegistry {
    const configs = [...this.objects].map(([key, config]) => this.limited.get(key)?.config ?? config);
    return buildServiceRegistry(configSetOf(configs), {}, previous);
  }
}

class GivenByDefault extends BudgetFixture {
  override get maxEndpoints(): number {
    return defaultConfigLimits.maxEndpointsPerNamespace;
  }
}

const endpointCount = ({ endpoints }: ServiceRegistry): number =>
  [...endpoints.values()]
    .flatMap((endpointsByNamespace) => [...endpointsByNamespace.values()])
    .reduce((sum, list) => sum + list.length, 0);

describe('the endpoint limit of a namespace', () => {
  it('limits the endpoints if 400 ServiceEntries select the same 1,500 WorkloadEntries, and keeps all services', () => {
    const objectSet = new BudgetFixture(
      ...listOf(400, (index) => entry(`s${index}`, { age: index })),
      ...listOf(1_500, (index) => workload(index)),
    );
    const keptCount = Math.floor(maxEndpoints / 1_500);
    expect(objectSet.limited.size).toBe(400 - keptCount);
    const registry = objectSet.registry();
    expect(registry.services).toHaveLength(400);
    expect(endpointCount(registry)).toBe(keptCount * 1_500);
    const problem = objectSet.limited.get('ServiceEntry/mallory/s399')!.problem;
    expect(problem).toMatchObject({
      severity: 'error',
      object: 'ServiceEntry mallory/s399',
      field: 'spec.workloadSelector',
    });
    expect(problem.message).toMatch(
      /mallory have 600000 endpoints .*limit is 131072 \(LIMIT_EXCEEDED\): .*workloads.*PILOT_MAX_ENDPOINTS_PER_NAMESPACE/,
    );
  });

  it('counts the pods and WorkloadEntries of a ServiceEntry once per host and port', () => {
    const workloads = [...listOf(512, (index) => workload(index)), ...listOf(512, pod)];
    const fittingSize = { hosts: 16, ports: 8 };
    expect(new BudgetFixture(entry('a', fittingSize), ...workloads).names).toEqual([]);
    expect(new BudgetFixture(...workloads, entry('a', { ...fittingSize, ports: 9 })).names).toEqual(['a']);
    expect(new BudgetFixture(entry('a', fittingSize), ...workloads, pod(512)).names).toEqual(['a']);
    expect(new BudgetFixture(entry('a', { ...fittingSize, ports: 9, resolution: 'NONE' }), ...workloads).names).toEqual(
      [],
    );
  });

  it('counts the WorkloadEntries that a Service selects, and removes those above the limit', () => {
    const objectSet = new BudgetFixture(
      service('old', 1, 100),
      service('young', 2, 100),
      ...listOf(1_000, (index) => workload(index)),
    );
    expect(objectSet.names).toEqual(['young']);
    const { endpoints } = objectSet.registry();
    expect(endpoints.get('old.mallory.svc.cluster.local')?.get('mallory')).toHaveLength(100_000);
    expect(endpoints.get('young.mallory.svc.cluster.local')?.get('mallory') ?? []).toEqual([]);
    expect(new BudgetFixture(service('a', 1, 200), ...listOf(1_000, pod)).names).toEqual([]);
  });

  it('admits by default 10 ServiceEntries with 5,000 pods each, 500 with 100 workloads each, and slices of 30,000 pods with 2 ports', () => {
    expect(new GivenByDefault(...listOf(10, (index) => entry(`s${index}`)), ...listOf(5_000, pod)).names).toEqual([]);
    expect(new GivenByDefault(...listOf(300, (index) => slice(`s${index}`, 100, 2))).names).toEqual([]);
    const entries = listOf(500, (index) => entry(`s${index}`, { labels: { app: `a${index % 20}`, team: 't' } }));
    const workloads = listOf(2_000, (index) => workload(index, { app: `a${index % 20}`, team: 't' }));
    expect(new GivenByDefault(...entries, ...workloads).names).toEqual([]);
  });

  it('counts the inline endpoints of a ServiceEntry once per host and port, and omits those above the limit', () => {
    const entryWithEndpoints = (name: string, age: number, resolution: string, count = 4_096): Config => {
      const config = entry(name, { age, hosts: 8, ports: 2, resolution });
      const { workloadSelector: _, ...spec } = config.spec as Record<string, unknown>;
      return { ...config, spec: { ...spec, endpoints: listOf(count, (index) => ({ address: address(index) })) } };
    };
    const objectSet = new BudgetFixture(
      entryWithEndpoints('old', 1, 'STATIC'),
      entryWithEndpoints('young', 2, 'STATIC'),
      entryWithEndpoints('dns', 3, 'DNS', 4_000),
    );
    expect(objectSet.names).toEqual(['dns']);
    expect(objectSet.limited.get('ServiceEntry/mallory/dns')!.problem.field).toBe('spec.endpoints');
    // Without endpoints, a DNS service would resolve its host, but requests must not be sent there.
    const { endpoints, services } = objectSet.registry();
    expect(endpoints.get('dns-0.test')?.get('mallory') ?? []).toEqual([]);
    expect(services.filter(({ hostname }) => hostname.startsWith('dns-'))).toHaveLength(8);
    expect(endpoints.get('young-0.test')?.get('mallory')).toHaveLength(2 * 4_096);
  });

  it('counts EndpointSlices as addresses times ports, and omits the endpoints of the youngest slices', () => {
    const objectSet = new BudgetFixture(
      service('web', 0, 25),
      ...listOf(6, (index) => slice(`s${index}`, 1_000, 25, index)),
    );
    expect(objectSet.names).toEqual(['s5']);
    expect(objectSet.limited.get('EndpointSlice/mallory/s5')!.problem).toMatchObject({
      field: 'endpoints',
      message: expect.stringMatching(/its endpoints are ignored: .* have 150000 endpoints .*LIMIT_EXCEEDED/),
    });
    expect(objectSet.limited.get('EndpointSlice/mallory/s5')!.config.spec).toMatchObject({ endpoints: [] });
  });

  it('limits the youngest objects regardless of the order of arrival, reports each once, and admits them when the total allows it', () => {
    const entries = listOf(4, (index) => entry(`s${index}`, { age: index, hosts: 50 }));
    const workloads = listOf(1_000, (index) => workload(index));
    for (const order of [
      [...entries, ...workloads],
      [...workloads, ...entries.toReversed()],
    ]) {
      const objectSet = new BudgetFixture();
      for (const object of order) objectSet.put(object);
      expect(objectSet.names).toEqual(['s2', 's3']);
      expect(objectSet.remove(...workloads.slice(0, 400))).toEqual(['s2', 's3']);
      expect(objectSet.names).toEqual([]);
      expect(objectSet.put(...workloads)).toEqual(['s2', 's3']);
      expect(objectSet.put(workload(1_000))).toEqual([]);
      // The share of the oldest object becomes available for the next one.
      expect(objectSet.remove(entries[0]!)).toEqual(['s2']);
    }
  });

  it('has the same result as a full rebuild after objects are limited and admitted again', () => {
    const workloads = listOf(700, (index) => workload(index));
    const objectSet = new BudgetFixture(
      ...listOf(2, (index) => entry(`s${index}`, { age: index, hosts: 100 })),
      ...workloads,
    );
    const addresses = (registry: ServiceRegistry, host: string): string =>
      (registry.endpoints.get(host)?.get('mallory') ?? []).map((endpoint) => endpoint.address).join();
    let registry: ServiceRegistry | undefined;
    registry = objectSet.registry();
    for (const [change, count] of [
      [() => objectSet.remove(...workloads.slice(0, 200)), 500],
      [() => objectSet.put(...workloads), 0],
    ] as const) {
      change();
      registry = objectSet.registry(registry);
      const rebuilt = objectSet.registry();
      for (const host of ['s0-0.test', 's0-99.test', 's1-0.test', 's1-99.test']) {
        expect(addresses(registry, host)).toBe(addresses(rebuilt, host));
      }
      expect(registry.endpoints.get('s1-99.test')?.get('mallory') ?? []).toHaveLength(count);
    }
  });

  it('stops counting a limited object when the object is removed or loses its selector', () => {
    const objectSet = new BudgetFixture(
      entry('a', { hosts: 200 }),
      entry('b', { hosts: 200 }),
      ...listOf(1_000, (index) => workload(index)),
    );
    expect(objectSet.names).toEqual(['a', 'b']);
    expect(objectSet.remove(entry('a'))).toEqual(['a']);
    expect(objectSet.put(entry('b', { labels: { app: 'other' } }))).toEqual(['b']);
    expect(objectSet.names).toEqual([]);
  });
});

describe('the endpoints of a ServiceEntry', () => {
  it('share one list for all hosts, even after a workload is added', () => {
    const objectSet = new BudgetFixture(entry('a', { hosts: 3 }), workload(0), workload(1));
    const first = objectSet.registry();
    objectSet.put(workload(2));
    const secondRegistry = objectSet.registry(first);
    for (const [{ endpoints }, count] of [
      [first, 2],
      [secondRegistry, 3],
    ] as const) {
      const lists = listOf(3, (index) => endpoints.get(`a-${index}.test`)!.get('mallory')!);
      expect(lists[0]).toHaveLength(count);
      expect(new Set(lists).size).toBe(1);
    }
  });
});
