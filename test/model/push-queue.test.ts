/** The push queue, with a scripted ADS server that completes pushes when the test orders it. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Actor, createActor, fromCallback, setup } from 'xstate';
import type { ClientsPush, ClientsServed, ProxiesServe } from '../../machines/discovery/protocol.ts';
import { pushQueueMachine } from '../../machines/discovery/push/push-queue.machine.ts';
import { maxChanges } from '../../machines/discovery/push/push-queue-record.ts';
import { stateName } from '../../src/runtime/trace/statechart.ts';

/** The queue next to its server, as under `discovery`. */
class QueueWorld {
  /** Orders that the server has not executed. */
  readonly orders: ProxiesServe[] = [];
  /** Pushes served to each proxy, in order. */
  readonly servedPushes: [connection: number, version: string, configs: string][] = [];
  /** How often `push` was notified that every proxy was served. */
  allServed = 0;
  readonly #root: Actor<ReturnType<QueueWorld['controlPlane']>>;

  constructor(throttle: number, proxies: readonly number[] = []) {
    this.#root = createActor(this.controlPlane(throttle));
    this.#root.start();
    for (const connection of proxies) this.connectProxy(connection);
  }

  controlPlane(throttle: number) {
    return setup({
      actors: {
        queue: pushQueueMachine,
        server: fromCallback<ProxiesServe>(({ receive }) => receive((order) => void this.orders.push(order))),
        push: fromCallback<ClientsServed>(({ receive }) => receive(() => void this.allServed++)),
      },
    }).createMachine({
      invoke: [
        { id: 'ads-server', systemId: 'ads-server', src: 'server' },
        { id: 'push', systemId: 'push', src: 'push' },
        { id: 'push-queue', systemId: 'push-queue', src: 'queue', input: { throttle } },
      ],
    });
  }

  get queue(): Actor<typeof pushQueueMachine> {
    return this.#root.system.get('push-queue') as Actor<typeof pushQueueMachine>;
  }

  get state(): string {
    return stateName(this.queue.getSnapshot().value);
  }

  /** Connections that the server was ordered to serve but has not reported. */
  get beingServed(): number[] {
    return this.orders.flatMap(({ connections }) => connections);
  }

  connectProxy(connection: number): void {
    this.queue.send({ type: 'proxy.connected', connection });
  }

  disconnectProxy(connection: number): void {
    this.queue.send({ type: 'proxy.disconnected', connection });
  }

  push(version: string, configs: string[] = [version], overrides: Partial<ClientsPush> = {}): void {
    this.queue.send({ type: 'clients.push', version, forced: false, configs, startedAt: 0, ...overrides });
  }

  /** The server executes its oldest order. */
  serve(): void {
    const { version, configs, connections } = this.orders.shift()!;
    for (const connection of connections) this.servedPushes.push([connection, version, configs.join()]);
    this.queue.send({ type: 'proxies.served', connections });
  }

  serveAll(): void {
    while (this.orders.length > 0) this.serve();
  }
}

const upTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1);

describe('the push queue', () => {
  it('reports when all proxies have been served with all pushed changes', () => {
    const world = new QueueWorld(1, [1, 2]);
    world.push('v1');
    world.serve();
    world.push('v2');
    world.serve();
    world.serve();
    expect([world.state, world.allServed]).toEqual(['accepting pushes.serving', 0]);
    world.serveAll();
    expect([world.state, world.allServed]).toEqual(['accepting pushes.idle', 1]);
  });

  it('reports completion immediately if no proxy is connected, and when the last one disconnects', () => {
    const world = new QueueWorld(1);
    world.push('v1');
    expect(world.allServed).toBe(1);
    world.connectProxy(1);
    world.push('v2');
    world.disconnectProxy(1);
    expect([world.state, world.allServed]).toEqual(['accepting pushes.idle', 2]);
  });

  it('serves every proxy in the order of arrival', () => {
    const world = new QueueWorld(10, [3, 1, 2]);
    world.push('v1');
    expect(world.orders).toMatchObject([{ connections: [3, 1, 2], version: 'v1', forced: false, configs: ['v1'] }]);
    expect(world.state).toBe('accepting pushes.serving');
    world.serve();
    expect(world.state).toBe('accepting pushes.idle');
    expect(world.orders).toEqual([]);
  });

  it('serves nothing if no proxy is connected, and nothing to a new proxy', () => {
    const world = new QueueWorld(10);
    world.push('v1');
    world.connectProxy(1);
    expect(world.orders).toEqual([]);
    expect(world.state).toBe('accepting pushes.idle');
  });

  it('serves no more proxies at a time than its limit, and the next when one is finished', () => {
    const world = new QueueWorld(2, upTo(5));
    world.push('v1');
    expect(world.state).toBe('accepting pushes.throttled');
    expect(world.beingServed).toEqual([1, 2]);
    world.serve();
    expect(world.beingServed).toEqual([3, 4]);
    world.serve();
    expect(world.beingServed).toEqual([5]);
    expect(world.state).toBe('accepting pushes.serving');
  });

  it('passes the slot of a proxy that disconnects while being served to the next proxy', () => {
    const world = new QueueWorld(2, upTo(3));
    world.push('v1');
    world.disconnectProxy(1);
    expect(world.beingServed).toEqual([1, 2, 3]);
    // A later report about the same connection releases no other slot.
    world.serveAll();
    expect(world.state).toBe('accepting pushes.idle');
  });

  it('merges all changes for a waiting proxy into one push and one queue entry', () => {
    const world = new QueueWorld(1, [1, 2]);
    world.push('v1', ['a'], { startedAt: 5 });
    world.push('v2', ['b'], { startedAt: 9 });
    world.serveAll();
    expect(world.servedPushes).toEqual([
      [1, 'v1', 'a'],
      [2, 'v2', 'a,b'],
      [1, 'v2', 'b'],
    ]);
  });

  it('measures the wait of a push from its earliest change, and forces a push if one of its changes is forced', () => {
    const world = new QueueWorld(1, [1, 2]);
    world.push('v1', ['a'], { startedAt: 5 });
    world.push('v2', ['b'], { startedAt: 9, forced: true });
    world.serve();
    expect(world.orders).toMatchObject([{ connections: [2], startedAt: 5, forced: true, version: 'v2' }]);
  });

  it('moves a proxy that is being served to the end of the queue if a change affects it', () => {
    const world = new QueueWorld(2, [1, 2, 3]);
    world.push('v1');
    world.push('v2');
    world.push('v3');
    world.serveAll();
    expect(world.servedPushes.map(([connection, version, configs]) => `${connection} ${version} ${configs}`)).toEqual([
      '1 v1 v1',
      '2 v1 v1',
      '3 v3 v1,v2,v3',
      '1 v3 v2,v3',
      '2 v3 v2,v3',
    ]);
  });

  it('removes a proxy that disconnects from the queue', () => {
    const world = new QueueWorld(1, upTo(3));
    world.push('v1');
    world.disconnectProxy(2);
    world.disconnectProxy(3);
    expect(world.state).toBe('accepting pushes.serving');
    world.serve();
    expect(world.servedPushes.map(([connection]) => connection)).toEqual([1]);
  });

  it('loses no change if changes are received faster than proxies are served, and stores a limited number', () => {
    const world = new QueueWorld(1, [1, 2]);
    for (let i = 0; i < 1_000; i++) {
      world.push(`v${i}`, [`c${i}`]);
      expect(world.queue.getSnapshot().context.queue.changes.length).toBeLessThanOrEqual(maxChanges);
    }
    world.serveAll();
    const pushedConfigs = (proxy: number): Set<string> =>
      new Set(
        world.servedPushes.flatMap(([connection, , configs]) => (connection === proxy ? configs.split(',') : [])),
      );
    expect([pushedConfigs(1).size, pushedConfigs(2).size]).toEqual([1_000, 1_000]);
    expect(world.queue.getSnapshot().context.queue.changes).toEqual([]);
  });

  it('accepts no new proxies or changes during a drain, and serves the waiting proxies', () => {
    const world = new QueueWorld(1, [1, 2]);
    world.push('v1');
    world.queue.send({ type: 'queue.drain' });
    world.push('v2');
    world.connectProxy(3);
    expect(world.state).toBe('draining');
    world.serveAll();
    expect(world.servedPushes).toEqual([
      [1, 'v1', 'v1'],
      [2, 'v1', 'v1'],
    ]);
    expect(world.state).toBe('drained');
    world.push('v3');
    expect(world.orders).toEqual([]);
  });

  it('stores its state as plain data', () => {
    const world = new QueueWorld(1, upTo(3));
    world.push('v1');
    world.push('v2');
    const { context } = world.queue.getSnapshot();
    expect(JSON.parse(JSON.stringify(context))).toEqual(context);
  });

  it('serves 500 proxies in as few orders as the throttle permits', () => {
    const world = new QueueWorld(25, upTo(500));
    world.push('v1');
    let orders = 0;
    for (; world.orders.length > 0; orders++) world.serve();
    expect(orders).toBe(20);
    expect(world.servedPushes).toHaveLength(500);
  });

  it('serves each proxy with all changes of its connection time, within the limit and never twice concurrently', () => {
    const event = fc.oneof(
      { weight: 3, arbitrary: fc.constant('push' as const) },
      { weight: 4, arbitrary: fc.constant('serve' as const) },
      { weight: 2, arbitrary: fc.constant('join' as const) },
      { weight: 1, arbitrary: fc.constant('leave' as const) },
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4 }), fc.array(event, { maxLength: 150, size: 'max' }), (throttle, run) => {
        const world = new QueueWorld(throttle);
        const owed = new Map<number, Set<string>>();
        let count = 0;
        const serveUntilIdle = (): void => {
          const turnsBefore = world.servedPushes.length;
          world.serve();
          for (const [connection, , configs] of world.servedPushes.slice(turnsBefore)) {
            for (const config of configs.split(',')) owed.get(connection)?.delete(config);
          }
        };
        for (const happens of run) {
          count++;
          if (happens === 'join') {
            owed.set(count, new Set());
            world.connectProxy(count);
          } else if (happens === 'leave') {
            const [first] = owed.keys();
            if (first === undefined) continue;
            owed.delete(first);
            world.disconnectProxy(first);
          } else if (happens === 'push') {
            for (const configs of owed.values()) configs.add(`c${count}`);
            world.push(`v${count}`, [`c${count}`]);
          } else if (world.orders.length > 0) serveUntilIdle();
          const present = world.beingServed.filter((connection) => owed.has(connection));
          expect(present.length).toBeLessThanOrEqual(throttle);
          expect(new Set(present).size).toBe(present.length);
        }
        while (world.orders.length > 0) serveUntilIdle();
        expect([...owed.values()].every(({ size }) => size === 0)).toBe(true);
        expect(world.queue.getSnapshot().context.queue).toMatchObject({ waiting: [], serving: [], changes: [] });
      }),
      { numRuns: 200 },
    );
  });
});
