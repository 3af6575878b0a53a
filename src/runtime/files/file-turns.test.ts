import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { FileTurns } from './file-turns.ts';

const neverAborted = new AbortController().signal;

test('a file operation waits for the previous one, even if that fails', async () => {
  const turns = new FileTurns();
  const first = Promise.withResolvers<string>();
  const startedTasks: string[] = [];
  const results = [
    turns.run(() => first.promise, neverAborted),
    turns.run(async () => void startedTasks.push('second'), neverAborted),
    turns.run(async () => void startedTasks.push('third'), neverAborted),
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
  void turns.run(() => hung.promise, neverAborted);
  const startedTasks: number[] = [];
  for (const turn of [1, 2, 3]) {
    const abortController = new AbortController();
    const result = turns.run(async () => void startedTasks.push(turn), abortController.signal);
    abortController.abort();
    await expect(result).rejects.toThrow('aborted');
  }
  const result = turns.run(async () => void startedTasks.push(4), neverAborted);
  hung.resolve();
  await result;
  expect(startedTasks).toEqual([4]);
});
