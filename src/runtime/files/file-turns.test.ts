import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { FileTurns } from './file-turns.ts';

const never = new AbortController().signal;

test('a question waits for the one before it, also where that one fails', async () => {
  const turns = new FileTurns();
  const first = Promise.withResolvers<string>();
  const asked: string[] = [];
  const answers = [
    turns.run(() => first.promise, never),
    turns.run(async () => void asked.push('second'), never),
    turns.run(async () => void asked.push('third'), never),
  ];
  await sleep(1);
  expect(asked).toEqual([]);
  first.reject(new Error('EIO'));
  await expect(answers[0]).rejects.toThrow('EIO');
  await Promise.all(answers.slice(1));
  expect(asked).toEqual(['second', 'third']);
});

test('who gives up while it hangs asks nothing, and whoever comes after the answer does', async () => {
  const turns = new FileTurns();
  const hung = Promise.withResolvers<void>();
  void turns.run(() => hung.promise, never);
  const asked: number[] = [];
  for (const turn of [1, 2, 3]) {
    const given = new AbortController();
    const answer = turns.run(async () => void asked.push(turn), given.signal);
    given.abort();
    await expect(answer).rejects.toThrow('aborted');
  }
  const answer = turns.run(async () => void asked.push(4), never);
  hung.resolve();
  await answer;
  expect(asked).toEqual([4]);
});
