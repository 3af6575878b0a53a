import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { FanOut, mergeChanges } from './ads-fan-out.ts';
import type { ResourceChange } from './resource-source.ts';

const change = (version: string, ...configs: string[]): ResourceChange => ({
  version,
  forced: false,
  configs: new Set(configs),
});

function busy(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

describe('a fan-out', () => {
  test('reaches every client, and says when', async () => {
    const served: string[] = [];
    const finished: number[] = [];
    const fanOut = new FanOut<string>({
      deliver: (client, { version }) => void served.push(`${client} ${version}`),
      finished: (_, clients) => void finished.push(clients),
    });
    fanOut.push(change('v1', 'a'), ['x', 'y']);
    expect(served).toEqual([]);
    await turn();
    expect(served).toEqual(['x v1', 'y v1']);
    expect(finished).toEqual([2]);
  });

  test('gives others their turn', async () => {
    let served = 0;
    const fanOut = new FanOut<number>({
      deliver() {
        served++;
        busy(3);
      },
    });
    fanOut.push(
      change('v1'),
      Array.from({ length: 20 }, (_, i) => i),
    );
    const seen: number[] = [];
    while (served < 20) {
      await turn();
      seen.push(served);
    }
    expect(seen.length).toBeGreaterThanOrEqual(8);
  });

  test('serves a client that waits once, with all that changed since', async () => {
    const served: [string, string, string[]][] = [];
    const fanOut = new FanOut<string>({
      deliver(client, { version, configs }) {
        served.push([client, version, [...configs]]);
        busy(10);
      },
    });
    fanOut.push(change('v1', 'a'), ['x', 'y']);
    await turn();
    expect(served).toEqual([['x', 'v1', ['a']]]);
    fanOut.push(change('v2', 'b'), ['x', 'y']);
    await turn();
    await turn();
    expect(served.slice(1)).toEqual([
      ['y', 'v2', ['a', 'b']],
      ['x', 'v2', ['b']],
    ]);
  });

  test('forgets who is gone, and stops', async () => {
    const served: string[] = [];
    const fanOut = new FanOut<string>({ deliver: (client) => void served.push(client) });
    fanOut.push(change('v1'), ['x', 'y']);
    fanOut.forget('x');
    await turn();
    expect(served).toEqual(['y']);
    fanOut.push(change('v2'), ['x']);
    fanOut.stop();
    await turn();
    expect(served).toEqual(['y']);
  });

  test('loses nothing when changes come faster than they can be served', async () => {
    const last = new Map<string, Set<string>>();
    const fanOut = new FanOut<string>({
      deliver: (client, { configs }) => void last.set(client, new Set([...(last.get(client) ?? []), ...configs])),
    });
    for (let i = 0; i < 1_000; i++) fanOut.push(change(`v${i}`, `c${i}`), ['x', 'y']);
    await turn();
    expect([...last.values()].map(({ size }) => size)).toEqual([1_000, 1_000]);
  });
});

test('changes merge into the newest version of all that changed', () => {
  const forced: ResourceChange = { version: 'v2', forced: true, configs: new Set() };
  expect(mergeChanges([change('v1', 'a', 'b'), forced, change('v3', 'b', 'c')])).toEqual({
    version: 'v3',
    forced: true,
    configs: new Set(['a', 'b', 'c']),
  });
});
