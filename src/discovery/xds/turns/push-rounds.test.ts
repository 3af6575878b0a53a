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

function blockLoop(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

describe('PushRounds', () => {
  test('continue if a client or listing the clients fails', async () => {
    const caughtErrors = uncaughtErrors();
    const servedClients: string[] = [];
    let isBroken = true;
    const rounds = new PushRounds({
      clients: () => {
        if (isBroken) throw new Error('no list');
        return [1, 2, 3];
      },
      serve(client, { version }) {
        if (client !== 2) throw new Error(`not ${client}`);
        servedClients.push(`${client} ${version}`);
      },
      finished: (_, clients) => void servedClients.push(`finished ${clients}`),
    });
    rounds.push(change('v1', 'a'));
    await eventually('that is told of', () => caughtErrors.length === 1);
    isBroken = false;
    rounds.push(change('v2', 'b'));
    await eventually('the round is over', () => servedClients.length === 2);
    expect(servedClients).toEqual(['2 v2', 'finished 3']);
    await turn();
    expect(caughtErrors.map(({ error }) => String(error))).toEqual(['Error: no list', 'Error: not 1', 'Error: not 3']);
  });

  test('serve all clients asynchronously, and report the end', async () => {
    const servedClients: string[] = [];
    const finished: number[] = [];
    const rounds = new PushRounds({
      clients: () => [1, 2],
      serve: (client, { version }) => void servedClients.push(`${client} ${version}`),
      finished: (_, clients) => void finished.push(clients),
    });
    rounds.push(change('v1', 'a'));
    expect(servedClients).toEqual([]);
    await turn();
    expect(servedClients).toEqual(['1 v1', '2 v1']);
    expect(finished).toEqual([2]);
  });

  test('let other work run', async () => {
    let servedCount = 0;
    const rounds = new PushRounds({
      clients: () => Array.from({ length: 20 }, (_, i) => i),
      serve() {
        servedCount++;
        blockLoop(3);
      },
    });
    rounds.push(change('v1'));
    let turnCount = 0;
    for (; servedCount < 20; turnCount++) await turn();
    expect(turnCount).toBeGreaterThanOrEqual(8);
  });

  test('combine changes during a round into the next round', async () => {
    const servedPushes: [number, string, string[]][] = [];
    const rounds = new PushRounds({
      clients: () => [1, 2],
      serve: (client, { version, configs }) => {
        servedPushes.push([client, version, [...configs]]);
        blockLoop(10);
      },
    });
    rounds.push(change('v1', 'a'));
    await turn();
    rounds.push(change('v2', 'b'));
    rounds.push(change('v3', 'c'));
    for (let i = 0; i < 3; i++) await turn();
    expect(servedPushes).toEqual([
      [1, 'v1', ['a']],
      [2, 'v1', ['a']],
      [1, 'v3', ['b', 'c']],
      [2, 'v3', ['b', 'c']],
    ]);
  });

  test('end when they are stopped', async () => {
    const servedClients: number[] = [];
    const rounds = new PushRounds({ clients: () => [1], serve: (client) => void servedClients.push(client) });
    rounds.push(change('v1'));
    rounds.stop();
    await turn();
    expect(servedClients).toEqual([]);
  });
});

test('combined changes are forced if one of them is forced', () => {
  expect(joinChanges({ ...change('v1', 'a'), forced: true }, change('v2', 'b'))).toEqual({
    version: 'v2',
    forced: true,
    configs: new Set(['a', 'b']),
  });
});
