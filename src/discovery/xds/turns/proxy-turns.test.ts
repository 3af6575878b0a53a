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

describe('the turns of proxies', () => {
  test('are executed later, in their order, and told of when all of an order are over', async () => {
    const told: string[] = [];
    const turns = new ProxyTurns({
      serve: (connection, { version, configs }) => void told.push(`${connection} ${version} ${[...configs]}`),
      served: ({ connections }) => void told.push(`served ${connections}`),
    });
    turns.take(order([2, 1]));
    turns.take(order([3], 'v2', ['b']));
    expect(told).toEqual([]);
    await turn();
    await eventuallyHolds(() => expect(told).toEqual(['2 v1 a', '1 v1 a', 'served 2,1', '3 v2 b', 'served 3']));
  });

  test('of one order bring the very same change, so that what it means is worked out once', async () => {
    const changes = new Set<ResourceChange>();
    const turns = new ProxyTurns({ serve: (_, change) => void changes.add(change), served() {} });
    turns.take(order([1, 2, 3]));
    await turn();
    expect(changes.size).toBe(1);
  });

  test('that fail cost nobody else theirs', async () => {
    const told: string[] = [];
    const turns = new ProxyTurns({
      serve(connection) {
        if (connection === 1) throw new Error('a bug');
        told.push(`${connection}`);
      },
      failed: (connection, error) => void told.push(`${connection} ${error}`),
      served: ({ connections }) => void told.push(`served ${connections}`),
    });
    turns.take(order([1, 2]));
    // On a busy machine a slice may be over after the first.
    await eventuallyHolds(() => expect(told).toEqual(['1 Error: a bug', '2', 'served 1,2']));
  });

  test('go on when nobody could be told of those that are over, or of one that failed', async () => {
    const caught = uncaughtErrors();
    const told: string[] = [];
    const turns = new ProxyTurns({
      serve(connection) {
        if (connection === 2) throw new Error('a bug');
        told.push(`${connection}`);
      },
      failed() {
        throw new Error('no log');
      },
      served({ connections }) {
        if (connections.includes(1)) throw new Error('no queue');
        told.push(`served ${connections}`);
      },
    });
    turns.take(order([1, 2]));
    turns.take(order([3]));
    await eventually('the second order is served', () => told.includes('served 3'));
    await turn();
    expect(told).toEqual(['1', '3', 'served 3']);
    expect(caught.map(({ error }) => String(error))).toEqual(['Error: no log', 'Error: no queue']);
    turns.take(order([4]));
    await eventually('the next one, too', () => told.includes('served 4'));
  });

  test('that come of turns that are over go on in the same slice', async () => {
    standingClock();
    const served: number[] = [];
    const turns: ProxyTurns = new ProxyTurns({
      serve: (connection) => void served.push(connection),
      served: ({ connections: [last] }) => {
        if (last! < 3) turns.take(order([last! + 1]));
      },
    });
    turns.take(order([1]));
    await turn();
    expect(served).toEqual([1, 2, 3]);
  });

  test('leave others their turn', async () => {
    const clock = standingClock();
    let served = 0;
    const turns = new ProxyTurns({
      serve() {
        served++;
        clock.pass(3);
      },
      served() {},
    });
    turns.take(order(Array.from({ length: 20 }, (_, i) => i)));
    const seen: number[] = [];
    while (served < 20) {
      await turn();
      seen.push(served);
    }
    expect(seen.length).toBeGreaterThanOrEqual(8);
  });

  test('end when the server does, also when a proxy brings that end', async () => {
    standingClock();
    const served: number[] = [];
    const turns: ProxyTurns = new ProxyTurns({
      serve(connection) {
        served.push(connection);
        if (connection === 2) turns.stop();
      },
      served: () => void served.push(-1),
    });
    turns.take(order([1, 2, 3]));
    await turn();
    await turn();
    expect(served).toEqual([1, 2]);
  });
});
