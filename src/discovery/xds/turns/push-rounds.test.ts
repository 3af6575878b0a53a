import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { eventually } from '../../../../test/harness/eventually.ts';
import { uncaughtErrors } from '../../../../test/harness/uncaught-errors.ts';
import type { ResourceChange } from '../resource-source.ts';
import { joinChanges, PushRounds } from './push-rounds.ts';

const change = (version: string, ...configs: string[]): ResourceChange => ({
  version,
  forced: false,
  configs: new Set(configs),
});

function busy(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

describe('PushRounds', () => {
  test('continue if a client or listing the clients fails', async () => {
    const caught = uncaughtErrors();
    const served: string[] = [];
    let isBroken = true;
    const rounds = new PushRounds({
      clients: () => {
        if (isBroken) throw new Error('no list');
        return [1, 2, 3];
      },
      serve(client, { version }) {
        if (client !== 2) throw new Error(`not ${client}`);
        served.push(`${client} ${version}`);
      },
      finished: (_, clients) => void served.push(`finished ${clients}`),
    });
    rounds.push(change('v1', 'a'));
    await eventually('that is told of', () => caught.length === 1);
    isBroken = false;
    rounds.push(change('v2', 'b'));
    await eventually('the round is over', () => served.length === 2);
    expect(served).toEqual(['2 v2', 'finished 3']);
    await turn();
    expect(caught.map(({ error }) => String(error))).toEqual(['Error: no list', 'Error: not 1', 'Error: not 3']);
  });

  test('serve all clients asynchronously, and report the end', async () => {
    const served: string[] = [];
    const finished: number[] = [];
    const rounds = new PushRounds({
      clients: () => [1, 2],
      serve: (client, { version }) => void served.push(`${client} ${version}`),
      finished: (_, clients) => void finished.push(clients),
    });
    rounds.push(change('v1', 'a'));
    expect(served).toEqual([]);
    await turn();
    expect(served).toEqual(['1 v1', '2 v1']);
    expect(finished).toEqual([2]);
  });

  test('let other work run', async () => {
    let served = 0;
    const rounds = new PushRounds({
      clients: () => Array.from({ length: 20 }, (_, i) => i),
      serve() {
        served++;
        busy(3);
      },
    });
    rounds.push(change('v1'));
    let turns = 0;
    for (; served < 20; turns++) await turn();
    expect(turns).toBeGreaterThanOrEqual(8);
  });

  test('combine changes during a round into the next round', async () => {
    const served: [number, string, string[]][] = [];
    const rounds = new PushRounds({
      clients: () => [1, 2],
      serve: (client, { version, configs }) => {
        served.push([client, version, [...configs]]);
        busy(10);
      },
    });
    rounds.push(change('v1', 'a'));
    await turn();
    rounds.push(change('v2', 'b'));
    rounds.push(change('v3', 'c'));
    for (let i = 0; i < 3; i++) await turn();
    expect(served).toEqual([
      [1, 'v1', ['a']],
      [2, 'v1', ['a']],
      [1, 'v3', ['b', 'c']],
      [2, 'v3', ['b', 'c']],
    ]);
  });

  test('end when they are stopped', async () => {
    const served: number[] = [];
    const rounds = new PushRounds({ clients: () => [1], serve: (client) => void served.push(client) });
    rounds.push(change('v1'));
    rounds.stop();
    await turn();
    expect(served).toEqual([]);
  });
});

test('combined changes are forced if one of them is forced', () => {
  expect(joinChanges({ ...change('v1', 'a'), forced: true }, change('v2', 'b'))).toEqual({
    version: 'v2',
    forced: true,
    configs: new Set(['a', 'b']),
  });
});
