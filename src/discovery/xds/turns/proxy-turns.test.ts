import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { ProxiesServe } from '../../../../machines/discovery/protocol.ts';
import { eventually, eventuallyHolds } from '../../../../test/harness/eventually.ts';
import { standingClock } from '../../../../test/harness/standing-clock.ts';
import { uncaughtErrors } from '../../../../test/harness/uncaught-errors.ts';
import type { ResourceChange } from '../resource-source.ts';
import { ProxyTurns } from './proxy-turns.ts';

const order = (connections: number[], version = 'v1', configs = ['a']): ProxiesServe => ({
  type: 'proxies.serve',
  connections,
  version,
  forced: false,
  configs,
  startedAt: 0,
});

describe('ProxyTurns', () => {
  test('run asynchronously and in order, and report when an order is completed', async () => {
    const events: string[] = [];
    const turns = new ProxyTurns({
      serve: (connection, { version, configs }) => void events.push(`${connection} ${version} ${[...configs]}`),
      onServed: ({ connections }) => void events.push(`served ${connections}`),
    });
    turns.addOrder(order([2, 1]));
    turns.addOrder(order([3], 'v2', ['b']));
    expect(events).toEqual([]);
    await turn();
    await eventuallyHolds(() => expect(events).toEqual(['2 v1 a', '1 v1 a', 'served 2,1', '3 v2 b', 'served 3']));
  });

  test('pass the same change to all connections of an order', async () => {
    const changes = new Set<ResourceChange>();
    const turns = new ProxyTurns({ serve: (_, change) => void changes.add(change), onServed() {} });
    turns.addOrder(order([1, 2, 3]));
    await turn();
    expect(changes.size).toBe(1);
  });

  test('continue with other connections if one fails', async () => {
    const events: string[] = [];
    const turns = new ProxyTurns({
      serve(connection) {
        if (connection === 1) throw new Error('a bug');
        events.push(`${connection}`);
      },
      onFailed: (connection, error) => void events.push(`${connection} ${error}`),
      onServed: ({ connections }) => void events.push(`served ${connections}`),
    });
    turns.addOrder(order([1, 2]));
    // On a busy machine, a slice may end after the first connection.
    await eventuallyHolds(() => expect(events).toEqual(['1 Error: a bug', '2', 'served 1,2']));
  });

  test('continue if the handler for a completed or failed order throws', async () => {
    const caughtErrors = uncaughtErrors();
    const events: string[] = [];
    const turns = new ProxyTurns({
      serve(connection) {
        if (connection === 2) throw new Error('a bug');
        events.push(`${connection}`);
      },
      onFailed() {
        throw new Error('no log');
      },
      onServed({ connections }) {
        if (connections.includes(1)) throw new Error('no queue');
        events.push(`served ${connections}`);
      },
    });
    turns.addOrder(order([1, 2]));
    turns.addOrder(order([3]));
    await eventually('the second order is served', () => events.includes('served 3'));
    await turn();
    expect(events).toEqual(['1', '3', 'served 3']);
    expect(caughtErrors.map(({ error }) => String(error))).toEqual(['Error: no log', 'Error: no queue']);
    turns.addOrder(order([4]));
    await eventually('the next one, too', () => events.includes('served 4'));
  });

  test('run follow-up orders of completed ones in the same slice', async () => {
    standingClock();
    const servedConnections: number[] = [];
    const turns: ProxyTurns = new ProxyTurns({
      serve: (connection) => void servedConnections.push(connection),
      onServed: ({ connections: [last] }) => {
        if (last! < 3) turns.addOrder(order([last! + 1]));
      },
    });
    turns.addOrder(order([1]));
    await turn();
    expect(servedConnections).toEqual([1, 2, 3]);
  });

  test('let other work run', async () => {
    const clock = standingClock();
    let servedCount = 0;
    const turns = new ProxyTurns({
      serve() {
        servedCount++;
        clock.pass(3);
      },
      onServed() {},
    });
    turns.addOrder(order(Array.from({ length: 20 }, (_, i) => i)));
    const servedCounts: number[] = [];
    while (servedCount < 20) {
      await turn();
      servedCounts.push(servedCount);
    }
    expect(servedCounts.length).toBeGreaterThanOrEqual(8);
  });

  test('end with the server even if serving a proxy stops it', async () => {
    standingClock();
    const servedConnections: number[] = [];
    const turns: ProxyTurns = new ProxyTurns({
      serve(connection) {
        servedConnections.push(connection);
        if (connection === 2) turns.stop();
      },
      onServed: () => void servedConnections.push(-1),
    });
    turns.addOrder(order([1, 2, 3]));
    await turn();
    await turn();
    expect(servedConnections).toEqual([1, 2]);
  });
});
