import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { FileTurns } from './file-turns.ts';

const never = new AbortController().signal;

test('a file operation waits for the previous one, even if that fails', async () => {
  const turns = new FileTurns();
  const first = Promise.withResolvers<string>();
  const startedTasks: string[] = [];
  const results = [
    turns.run(() => first.promise, never),
    turns.run(async () => void startedTasks.push('second'), never),
    turns.run(async () => void startedTasks.push('third'), never),
  ];
  await sleep(1);
  expect(startedTasks).toEqual([]);
  first.reject(new Error('EIO'));
  await expect(results[0]).rejects.toThrow('EIO');
  await Promise.all(results.slice(1));
  expect(startedTasks).toEqual(['second', 'third']);
});

test('a file operation that is aborted while waiting is not started, and the next one starts after the running one', async () => {
  const turns = new FileTurns();
  const hung = Promise.withResolvers<void>();
  void turns.run(() => hung.promise, never);
  const startedTasks: number[] = [];
  for (const turn of [1, 2, 3]) {
    const given = new AbortController();
    const result = turns.run(async () => void startedTasks.push(turn), given.signal);
    given.abort();
    await expect(result).rejects.toThrow('aborted');
  }
  const result = turns.run(async () => void startedTasks.push(4), never);
  hung.resolve();
  await result;
  expect(startedTasks).toEqual([4]);
});
