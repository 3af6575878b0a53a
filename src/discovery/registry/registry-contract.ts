/**
 * What every registry must do (spec/discovery.md §5.1, §5.8): a suite that is run against each of them, and later against
 * a live cluster and Consul. A driver says how to bring services and endpoints about.
 */
import { expect } from 'vitest';
import { EndpointShards } from '../../model/endpoint-shards.ts';
import { givenProxy } from '../../model/given-mesh.ts';
import type { Registry, ServiceEvent } from './registry.ts';
import { type PendingPush, RegistryUpdates } from './registry-updates.ts';

/** A service with one HTTP port 80 that sends to 8080. */
export interface GivenService {
  /** Of `web.shop.svc.cluster.local` or what the driver makes of it: `web`. */
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
}

export interface GivenEndpoint {
  readonly address: string;
  /** Name of its service account; absent: it has none, or its registry's default. */
  readonly serviceAccount?: string;
  readonly healthy?: boolean;
}

/** Brings about in one registry what its source would say. All services are in the namespace `shop`. */
export interface RegistryDriver {
  readonly registry: Registry;
  hostOf(name: string): string;
  /** Adds it or puts it in the place of the one of this name, with these endpoints. */
  put(service: GivenService, endpoints: readonly GivenEndpoint[]): void;
  /** Tells the registry again what it was told last, as sources do. */
  repeat(): void;
  remove(name: string): void;
}

/** What surrounds a registry under test. */
export class ContractWorld {
  readonly shards = new EndpointShards();
  readonly updates = new RegistryUpdates(this.shards, () => this.registry);
  readonly events: string[] = [];
  readonly driver: RegistryDriver;

  constructor(makeDriver: (updates: RegistryUpdates) => RegistryDriver) {
    this.driver = makeDriver(this.updates);
  }

  get registry(): Registry {
    return this.driver.registry;
  }

  /** Runs the registry, its events recorded. */
  run(): void {
    this.registry.appendServiceHandler(({ event, hostname }) => this.events.push(`${event} ${hostname}`));
    this.registry.run();
    this.updates.take();
  }

  /** What a push names since the last time: `ServiceEntry`, `Endpoints`. */
  pushed(): string[] {
    const { services, endpoints }: PendingPush = this.updates.take();
    return [...new Set([...services, ...endpoints].filter((key) => key.includes('/shop/')))].filter((key) =>
      ['web', 'cart'].some((name) => key.endsWith(`/${this.driver.hostOf(name)}`)),
    );
  }

  addresses(name: string): string[] {
    const list = this.shards.index.get(this.driver.hostOf(name))?.get('shop') ?? [];
    return list.map(({ address }) => address);
  }
}

interface ContractCase {
  readonly title: string;
  readonly run: (world: ContractWorld) => void;
}

const one = [{ address: '10.0.0.1' }];

/** The cases; give each to `it`. */
export const registryContract: readonly ContractCase[] = [
  {
    title: 'holds back what it is told before it runs, and says all of it then',
    run: (world) => {
      const seen: ServiceEvent[] = [];
      world.registry.appendServiceHandler((event) => seen.push(event));
      world.driver.put({ name: 'web' }, one);
      expect(seen).toEqual([]);
      expect(world.registry.hasSynced()).toBe(false);
      world.registry.run();
      expect(seen.map(({ event, hostname }) => `${event} ${hostname}`)).toEqual([`add ${world.driver.hostOf('web')}`]);
      expect(world.registry.hasSynced()).toBe(true);
      expect(world.addresses('web')).toEqual(['10.0.0.1']);
    },
  },
  {
    title: 'takes no handler once it runs',
    run: (world) => {
      world.run();
      expect(() => world.registry.appendServiceHandler(() => {})).toThrow('before');
      expect(() => world.registry.appendWorkloadHandler(() => {})).toThrow('before');
    },
  },
  {
    title: 'tells handlers one after the other, in their order, and of each service in the order of events',
    run: (world) => {
      const seen: string[] = [];
      world.registry.appendServiceHandler(({ event }) => seen.push(`first ${event}`));
      world.registry.appendServiceHandler(({ event }) => seen.push(`second ${event}`));
      world.registry.run();
      world.driver.put({ name: 'web' }, one);
      world.driver.put({ name: 'web', labels: { a: 'b' } }, one);
      world.driver.remove('web');
      expect(seen).toEqual(['add', 'update', 'delete'].flatMap((event) => [`first ${event}`, `second ${event}`]));
    },
  },
  {
    title: 'is at least as new as the event when a handler is called, and its endpoints are there',
    run: (world) => {
      const seen: unknown[] = [];
      world.registry.appendServiceHandler(({ hostname }) =>
        seen.push([world.registry.getService(hostname)?.hostname, world.addresses('web')]),
      );
      world.registry.run();
      world.driver.put({ name: 'web' }, one);
      expect(seen).toEqual([[world.driver.hostOf('web'), ['10.0.0.1']]]);
    },
  },
  {
    title: 'gives each service once',
    run: (world) => {
      world.run();
      world.driver.put({ name: 'web' }, one);
      world.driver.put({ name: 'web', labels: { a: 'b' } }, one);
      world.driver.put({ name: 'cart' }, []);
      const hosts = world.registry.services().map(({ hostname }) => hostname);
      expect(hosts.toSorted()).toEqual(['cart', 'web'].map((name) => world.driver.hostOf(name)));
      expect(world.registry.getService(world.driver.hostOf('web'))?.labels).toMatchObject({ a: 'b' });
      expect(world.registry.getService('nobody.example.com')).toBeUndefined();
    },
  },
  {
    title: 'says nothing of what is told again and is equal',
    run: (world) => {
      world.run();
      world.driver.put({ name: 'web' }, one);
      world.events.length = 0;
      world.pushed();
      const before = world.shards.index.get(world.driver.hostOf('web'))?.get('shop');
      world.driver.repeat();
      world.driver.put({ name: 'web' }, [...one]);
      expect(world.events).toEqual([]);
      expect(world.pushed()).toEqual([]);
      expect(world.shards.index.get(world.driver.hostOf('web'))?.get('shop')).toBe(before);
    },
  },
  {
    title: 'pushes the service when it is first seen, and endpoints alone when only they change',
    run: (world) => {
      world.run();
      const host = world.driver.hostOf('web');
      world.driver.put({ name: 'web' }, one);
      expect(world.pushed()).toEqual([`ServiceEntry/shop/${host}`]);
      world.events.length = 0;
      world.driver.put({ name: 'web' }, [...one, { address: '10.0.0.2' }]);
      expect(world.pushed()).toEqual([`Endpoints/shop/${host}`]);
      expect(world.addresses('web')).toEqual(['10.0.0.1', '10.0.0.2']);
      expect(world.events).toEqual([]);
    },
  },
  {
    title: 'keeps the key of a service without endpoints, so that its next ones are no new service',
    run: (world) => {
      world.run();
      const host = world.driver.hostOf('web');
      world.driver.put({ name: 'web' }, one);
      world.pushed();
      world.driver.put({ name: 'web' }, []);
      expect(world.pushed()).toEqual([`Endpoints/shop/${host}`]);
      expect(world.shards.of({ hostname: host, namespace: 'shop' })?.shards.size).toBe(0);
    },
  },
  {
    title: 'pushes the service when its endpoints run under other service accounts',
    run: (world) => {
      world.run();
      world.driver.put({ name: 'web' }, [{ address: '10.0.0.1', serviceAccount: 'a' }]);
      world.pushed();
      world.driver.put({ name: 'web' }, [{ address: '10.0.0.1', serviceAccount: 'b' }]);
      expect(world.pushed()).toEqual([`ServiceEntry/shop/${world.driver.hostOf('web')}`]);
    },
  },
  {
    title: 'says nothing of an endpoint that comes unhealthy, and something when one turns so',
    run: (world) => {
      world.run();
      const unhealthy = { address: '10.0.0.2', healthy: false };
      world.driver.put({ name: 'web' }, one);
      world.pushed();
      world.driver.put({ name: 'web' }, [...one, unhealthy]);
      expect(world.pushed()).toEqual([]);
      world.driver.put({ name: 'web' }, [{ ...one[0]!, healthy: false }, unhealthy]);
      expect(world.pushed()).toEqual([`Endpoints/shop/${world.driver.hostOf('web')}`]);
    },
  },
  {
    title: 'takes its endpoints along when a service goes',
    run: (world) => {
      world.run();
      const host = world.driver.hostOf('web');
      world.driver.put({ name: 'web' }, one);
      world.pushed();
      world.driver.remove('web');
      expect(world.pushed()).toEqual([`ServiceEntry/shop/${host}`]);
      expect(world.shards.of({ hostname: host, namespace: 'shop' })).toBeUndefined();
      expect(world.shards.count).toBe(0);
      expect(world.registry.services()).toEqual([]);
      expect(world.events).toEqual([`add ${host}`, `delete ${host}`]);
    },
  },
  {
    title: 'finds what a proxy serves by its address, and nothing for a stranger',
    run: (world) => {
      world.run();
      world.driver.put({ name: 'web' }, one);
      const clusterId = world.registry.clusterId;
      const of = (ip: string): unknown[] =>
        world.registry
          .getProxyServiceTargets({ ...givenProxy({ ip, namespace: 'shop' }), name: 'nobody.shop', clusterId })
          .map(({ service, port, targetPort }) => [service.hostname, port.number, targetPort]);
      expect(of('10.0.0.1')).toEqual([[world.driver.hostOf('web'), 80, 8080]]);
      expect(of('10.0.0.99')).toEqual([]);
      world.driver.remove('web');
      expect(of('10.0.0.1')).toEqual([]);
    },
  },
  {
    title: 'answers of one moment stay as they are',
    run: (world) => {
      world.run();
      world.driver.put({ name: 'web' }, one);
      const [endpoints, lookup] = [world.shards.index, world.registry.lookup];
      world.driver.remove('web');
      expect(endpoints.get(world.driver.hostOf('web'))?.get('shop')).toHaveLength(1);
      const { clusterId } = world.registry;
      const proxy = { ...givenProxy({ ip: '10.0.0.1', namespace: 'shop' }), name: 'nobody.shop', clusterId };
      expect(lookup.targetsOf(proxy)).toHaveLength(1);
    },
  },
  {
    title: 'tells nobody anything once it is stopped',
    run: (world) => {
      world.run();
      world.registry.stop();
      world.driver.put({ name: 'web' }, one);
      expect(world.events).toEqual([]);
      expect(world.pushed()).toEqual([]);
    },
  },
];
