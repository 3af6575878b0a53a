import { describe, expect, it } from 'vitest';
import { ApiError } from '../kubernetes/api-failure.ts';
import { DueKeys } from './due-keys.ts';

const usual = { retry: true, anew: false };
const none = (): string[] => [];

/** Keys, and what a run asked to be written. */
function given(...keys: string[]) {
  const due = new DueKeys();
  for (const key of keys) due.add(key);
  const asked: string[] = [];
  const failing = new Map<string, Error>();
  const write = async (key: string): Promise<boolean> => {
    asked.push(key);
    const error = failing.get(key);
    if (error !== undefined) throw error;
    return true;
  };
  return { due, asked, failing, write };
}

describe('what is due', () => {
  it('is written once, however often it became so, and is due no more', async () => {
    const { due, asked, write } = given('a', 'b', 'a');
    expect(await due.write(usual, none, write)).toEqual({ written: 2, failed: 0, reason: '' });
    expect(asked).toEqual(['a', 'b']);
    expect(due.isDue).toBe(false);
    expect(await due.write(usual, none, write)).toEqual({ written: 0, failed: 0, reason: '' });
  });

  it('is told each time, also during a run, to whoever watches', async () => {
    const { due } = given('a');
    let told = 0;
    const end = due.watch(() => void told++);
    await due.write(usual, none, async () => {
      due.add('a');
      return true;
    });
    expect([told, due.isDue]).toEqual([1, true]);
    end();
    due.add('b');
    expect(told).toBe(1);
  });

  it('is everything where a term begins, what was due among it once', async () => {
    const { due, asked, write } = given('a');
    await due.write({ retry: true, anew: true }, () => ['a', 'b'], write);
    expect(asked).toEqual(['a', 'b']);
  });

  it('is not counted where there was nothing to be written', async () => {
    const { due } = given('a');
    expect(await due.write(usual, none, async () => false)).toEqual({ written: 0, failed: 0, reason: '' });
  });
});

describe('what failed', () => {
  it('holds up nothing, and is tried again only when that is asked for', async () => {
    const { due, asked, failing, write } = given('a', 'b');
    failing.set('a', new Error('refused'));
    expect(await due.write(usual, none, write)).toEqual({ written: 1, failed: 1, reason: 'refused' });
    await due.write({ retry: false, anew: false }, none, write);
    expect(asked).toEqual(['a', 'b']);
    failing.clear();
    expect(await due.write(usual, none, write)).toEqual({ written: 1, failed: 0, reason: '' });
    expect(asked).toEqual(['a', 'b', 'a']);
  });

  it('for the end of the term stops the run, and all that nobody got to is left for the next one', async () => {
    const keys = Array.from({ length: 20 }, (_, index) => `key-${index}`);
    const { due, asked, failing, write } = given(...keys);
    for (const key of keys)
      failing.set(key, new ApiError({ kind: 'aborted', message: 'this replica is not the leader' }));
    const { failed } = await due.write(usual, none, write);
    expect(failed).toBeLessThan(keys.length);
    expect(asked).toHaveLength(failed);
    failing.clear();
    expect(await due.write(usual, none, write)).toMatchObject({ written: 20, failed: 0 });
  });
});
