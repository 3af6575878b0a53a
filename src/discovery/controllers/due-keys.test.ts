import { describe, expect, it } from 'vitest';
import { ApiError } from '../kubernetes/api-failure.ts';
import { DueKeys } from './due-keys.ts';

const usualRun = { retry: true, includesAll: false };
const none = (): string[] => [];

/** @returns due keys, and a list of the keys that a run wrote */
function createDueKeys(...keys: string[]) {
  const dueKeys = new DueKeys();
  for (const key of keys) dueKeys.add(key);
  const attempted: string[] = [];
  const failing = new Map<string, Error>();
  const write = async (key: string): Promise<boolean> => {
    attempted.push(key);
    const error = failing.get(key);
    if (error !== undefined) throw error;
    return true;
  };
  return { due: dueKeys, asked: attempted, failing, write };
}

describe('a due key', () => {
  it('is written once, even if it is added several times', async () => {
    const { due, asked: attempted, write } = createDueKeys('a', 'b', 'a');
    expect(await due.write(usualRun, none, write)).toEqual({ writtenCount: 2, failedCount: 0, reason: '' });
    expect(attempted).toEqual(['a', 'b']);
    expect(due.isDue).toBe(false);
    expect(await due.write(usualRun, none, write)).toEqual({ writtenCount: 0, failedCount: 0, reason: '' });
  });

  it('notifies watchers each time it is added, even during a run', async () => {
    const { due } = createDueKeys('a');
    let notifications = 0;
    const end = due.watch(() => void notifications++);
    await due.write(usualRun, none, async () => {
      due.add('a');
      return true;
    });
    expect([notifications, due.isDue]).toEqual([1, true]);
    end();
    due.add('b');
    expect(notifications).toBe(1);
  });

  it('is added once for each object at the start of a term', async () => {
    const { due, asked: attempted, write } = createDueKeys('a');
    await due.write({ retry: true, includesAll: true }, () => ['a', 'b'], write);
    expect(attempted).toEqual(['a', 'b']);
  });

  it('is not counted as written if no write was necessary', async () => {
    const { due } = createDueKeys('a');
    expect(await due.write(usualRun, none, async () => false)).toEqual({ writtenCount: 0, failedCount: 0, reason: '' });
  });
});

describe('a failed key', () => {
  it('does not delay other keys, and is retried only on request', async () => {
    const { due, asked: attempted, failing, write } = createDueKeys('a', 'b');
    failing.set('a', new Error('refused'));
    expect(await due.write(usualRun, none, write)).toEqual({ writtenCount: 1, failedCount: 1, reason: 'refused' });
    await due.write({ retry: false, includesAll: false }, none, write);
    expect(attempted).toEqual(['a', 'b']);
    failing.clear();
    expect(await due.write(usualRun, none, write)).toEqual({ writtenCount: 1, failedCount: 0, reason: '' });
    expect(attempted).toEqual(['a', 'b', 'a']);
  });

  it('stops the run if the term has ended, and the remaining keys wait for the next run', async () => {
    const keys = Array.from({ length: 20 }, (_, index) => `key-${index}`);
    const { due, asked: attempted, failing, write } = createDueKeys(...keys);
    for (const key of keys)
      failing.set(key, new ApiError({ kind: 'aborted', message: 'this replica is not the leader' }));
    const { failedCount } = await due.write(usualRun, none, write);
    expect(failedCount).toBeLessThan(keys.length);
    expect(attempted).toHaveLength(failedCount);
    failing.clear();
    expect(await due.write(usualRun, none, write)).toMatchObject({ writtenCount: 20, failedCount: 0 });
  });
});
